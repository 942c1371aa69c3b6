/**
 * A host name or IPv4 address. Also allows `_` and hyphens at a label's ends, which RFC 1123
 * forbids and real hosts use.
 */
const HOST = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;
const IPV6_LITERAL = /^\[[0-9a-f:.]{2,45}\]$/;

/**
 * Normalizes an authority for matching: lower case, without port and one trailing dot. Undefined if
 * it has no valid host. The backend gets the original.
 */
export function hostForMatching(authority: string): string | undefined {
  const withoutPort = /^(.*?)(?::[0-9]{0,5})?$/s.exec(authority)?.[1] ?? "";
  const host = withoutPort.toLowerCase();
  if (IPV6_LITERAL.test(host)) return host;
  const name = host.endsWith(".") ? host.slice(0, -1) : host;
  return HOST.test(name) ? name : undefined;
}

/**
 * The `*.suffix` rule that may match a host: the star stands for exactly one label (KEP-1453).
 * Undefined for a single label.
 */
export function wildcardOf(host: string): string | undefined {
  const dot = host.indexOf(".");
  return dot <= 0 || host.startsWith("[") ? undefined : `*${host.slice(dot)}`;
}
