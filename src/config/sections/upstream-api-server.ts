import { withoutUserinfo } from "@sluice/client/internal/config/configuration-error";
import { checked, table } from "@sluice/client/internal/config/field";
import { boolean, choice, string } from "@sluice/client/internal/config/fields";
import {
  checkUpstreamTrust,
  upstreamTrustFields,
} from "@sluice/client/internal/config/sections/upstream-trust";

/** Options for a URL with only scheme, host and port. */
export const ORIGIN_URL = { check: checkOrigin, to: (value: string) => new URL(value).origin } as const;

/** How the gateway names callers to an API server at which it has its own credentials. */
export const impersonationFields = {
  impersonation: choice(
    "Permissions of impersonation. `legacy`: the verb `impersonate`. `constrained`: those of KEP-5284 (Kubernetes 1.36), never `system:masters`; service accounts lose uid and extra. `sluice rbac` prints either.",
    ["legacy", "constrained"],
    { default: "legacy" },
  ),
  nameRequester: boolean(
    "Send the name of a caller that impersonates (`kubectl --as`) to the API server as the extra `sluice.dev/requested-by`, for its audit log.",
    { default: true },
  ),
} as const;

/** The API server that gets every request that does not stream. */
export const upstreamApiServer = checked(
  table({
    url: string("Scheme, host and port: `https://host:port`.", {
      ...ORIGIN_URL,
      required: 'is required, such as "https://kubernetes.default.svc:443"',
    }),
    ...upstreamTrustFields(),
    ...impersonationFields,
  }),
  (values, section) => {
    checkUpstreamTrust(values, section);
    for (const name of Object.keys(impersonationFields)) {
      if (values.clientCertificateFile === undefined && section.has(name))
        section.problem(name, "is read with clientCertificateFile only");
    }
  },
);

function checkOrigin(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || (url.protocol !== "https:" && url.protocol !== "http:")) {
    return `must be an http or https URL, got ${JSON.stringify(withoutUserinfo(value).slice(0, 80))}`;
  }
  if (url.username !== "" || url.password !== "") {
    return "must not hold credentials";
  }
  return url.pathname === "/" && url.search === "" && url.hash === ""
    ? undefined
    : `must be a host and port alone, such as ${JSON.stringify(url.origin)}`;
}
