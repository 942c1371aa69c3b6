import type { Section } from "./section.ts";
import { readUpstreamTrust, type UpstreamTrust } from "./upstream-trust.ts";

/** The real API server, which gets everything that is not ours. */
export interface UpstreamApiServer extends UpstreamTrust {
  /** `https://host:port`, without path, query or credentials. */
  readonly url: string;
}

export function readUpstreamApiServer(section: Section): UpstreamApiServer | undefined {
  const url = section.optionalString("url", checkOrigin);
  if (!section.has("url")) {
    section.problem("url", 'is required, such as "https://kubernetes.default.svc:443"');
  }
  const trust = readUpstreamTrust(section, false);
  section.finish();
  return url === undefined ? undefined : { url: new URL(url).origin, ...trust };
}

/** What is wrong with a URL that must be a scheme, host and port alone. */
export function checkOrigin(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    return `must be an http or https URL, got ${JSON.stringify(value.slice(0, 80))}`;
  }
  if (url.username !== "" || url.password !== "") {
    return "must not hold credentials";
  }
  return url.pathname === "/" && url.search === "" && url.hash === ""
    ? undefined
    : `must be a host and port alone, such as ${JSON.stringify(url.origin)}`;
}
