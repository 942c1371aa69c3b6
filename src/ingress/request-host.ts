/** A host name or an IPv4 address, with what RFC 1123 excludes and real hosts have: `_`, and hyphens at a label's ends. */
const HOST = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;
const IPV6_LITERAL = /^\[[0-9a-f:.]{2,45}\]$/;

/**
 * What a request's authority is matched by: lower case, without port and one trailing dot. Undefined: no host, a bad request. The
 * backend gets the original.
 */
export function hostForMatching(authority: string): string | undefined {
  const withoutPort = /^(.*?)(?::[0-9]{0,5})?$/s.exec(authority)?.[1] ?? "";
  const host = withoutPort.toLowerCase();
  if (IPV6_LITERAL.test(host)) return host;
  const name = host.endsWith(".") ? host.slice(0, -1) : host;
  return HOST.test(name) ? name : undefined;
}

/** The rule `*.suffix` that may match a host: exactly one label stands for the star (KEP-1453). Undefined for a single label. */
export function wildcardOf(host: string): string | undefined {
  const dot = host.indexOf(".");
  return dot <= 0 || host.startsWith("[") ? undefined : `*${host.slice(dot)}`;
}
