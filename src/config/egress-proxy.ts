import type { Section } from "./section.ts";
import { readUpstreamTrust, type UpstreamTrust } from "./upstream-trust.ts";

/** The HTTP CONNECT proxy through which nodes are reached; EgressSelectorConfiguration's HTTPConnect transport. */
export interface EgressProxySettings extends UpstreamTrust {
  /** `http://host:port`, `https://host:port` or `unix:///path`. */
  readonly url: string;
  /** One line `user:password`, sent as Basic credentials; read again at each dial. */
  readonly credentialsFile: string | undefined;
}

export function readEgressProxy(section: Section): EgressProxySettings | undefined {
  const url = section.optionalString("url", checkProxyUrl);
  if (!section.has("url")) {
    section.problem("url", 'is required, such as "https://konnectivity:8131" or "unix:///run/proxy.sock"');
  }
  const settings = {
    ...readUpstreamTrust(section, false),
    credentialsFile: section.optionalFile("credentialsFile", "text"),
  };
  section.finish();
  return url === undefined ? undefined : { url, ...settings };
}

function checkProxyUrl(value: string): string | undefined {
  const shape = "must be http://host:port, https://host:port or unix:///path";
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined) return shape;
  // Configuration files are shown around; files of secrets are not.
  if (url.username !== "" || url.password !== "") return "must not hold credentials; use credentialsFile";
  if (url.protocol === "unix:") {
    return url.hostname === "" && url.pathname.length > 1 && url.search + url.hash === "" ? undefined : shape;
  }
  const isPlain = url.pathname === "/" && url.search === "" && url.hash === "";
  return (url.protocol === "http:" || url.protocol === "https:") && isPlain ? undefined : shape;
}
