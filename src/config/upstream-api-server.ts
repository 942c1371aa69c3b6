import { checked, table } from "./field.ts";
import { string } from "./fields.ts";
import { checkUpstreamTrust, upstreamTrustFields } from "./upstream-trust.ts";

/** Options of a field with a URL of scheme, host and port alone. */
export const ORIGIN_URL = { check: checkOrigin, to: (value: string) => new URL(value).origin } as const;

/** The API server that gets every request but those that stream. */
export const upstreamApiServer = checked(
  table({
    url: string("Scheme, host and port: `https://host:port`.", {
      ...ORIGIN_URL,
      required: 'is required, such as "https://kubernetes.default.svc:443"',
    }),
    ...upstreamTrustFields(),
  }),
  checkUpstreamTrust,
);

function checkOrigin(value: string): string | undefined {
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
