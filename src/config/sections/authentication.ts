import { withoutUserinfo } from "@sluice/client/internal/config/configuration-error";
import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, choice, file, implied, string } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import {
  REVIEW_VERSIONS,
  reviewTargetFields,
  withTarget,
} from "@sluice/client/internal/config/sections/webhook-target";
import { checkIssuers, type JwtIssuer, jwtAuthenticator, SIGNING_ALGORITHMS } from "../jwt-authenticators.ts";
import { count, duration } from "../number-fields.ts";
import { choices, map, optionalSection, section, sections, strings } from "../section-fields.ts";

const TOKEN_REVIEW_FLAG = "authentication-token-webhook-config-file";
const TTL = { from: "0s", to: "1h" } as const;

const requestHeader = table(
  {
    clientCAFile: file("CA certificates that sign the proxy's client certificate.", "certificates", {
      required: "is required",
      flag: "requestheader-client-ca-file",
    }),
    usernameHeaders: strings("Headers that name the user: the first that is present and not blank.", {
      default: ["X-Remote-User"],
      check: checkHeaderName,
      flag: "requestheader-username-headers",
    }),
    uidHeaders: strings("Headers that name the user's UID.", {
      default: ["X-Remote-Uid"],
      check: checkHeaderName,
      flag: "requestheader-uid-headers",
    }),
    groupHeaders: strings("Headers that name the user's groups.", {
      default: ["X-Remote-Group"],
      check: checkHeaderName,
      flag: "requestheader-group-headers",
    }),
    extraHeaderPrefixes: strings("Prefixes of headers with extra attributes of the user.", {
      default: ["X-Remote-Extra-"],
      check: checkHeaderName,
      flag: "requestheader-extra-headers-prefix",
    }),
    allowedNames: strings("Common names of the proxy's certificate. Empty: any.", {
      flag: "requestheader-allowed-names",
    }),
  },
  // Without an authority any client could claim to be the proxy, so the headers are ignored.
  { keyField: "clientCAFile" },
);

const oidc = table(
  {
    issuerURL: string("The `iss` of its tokens, an https URL with the discovery document below it.", {
      as: "issuerUrl",
      required: 'is required, such as "https://accounts.example.com"',
      check: checkIssuerUrl,
      flag: { name: "oidc-issuer-url", placeholder: "URL" },
    }),
    audiences: strings("A token must name at least one of these audiences.", {
      required: "is required: without it tokens for others would do",
      flag: "oidc-client-id",
    }),
    caFile: file(
      "CA certificates that sign the issuer's certificate. Absent: Node.js's own list.",
      "certificates",
      {
        flag: "oidc-ca-file",
      },
    ),
    usernameClaim: string("The claim with the user's name.", { default: "sub", flag: "oidc-username-claim" }),
    usernamePrefix: string(
      "Prefix for user names; `-` means none. Absent: the issuer and `#`, or none if the claim is `email`.",
      { flag: "oidc-username-prefix" },
    ),
    groupsClaim: string("The claim with the user's groups. Absent: no groups.", {
      flag: "oidc-groups-claim",
    }),
    groupsPrefix: string("Prefix of group names.", { default: "", flag: "oidc-groups-prefix" }),
    requiredClaims: map("Claims that a token must contain, with their values.", {
      type: "map of strings",
      values: { type: ["string", "null"] },
      parse: (value) => {
        if (typeof value === "string") return value;
        throw new RangeError("must be a string");
      },
      flag: { name: "oidc-required-claim", placeholder: "CLAIM=VALUE,...", read: claimsOf },
    }),
    signingAlgorithms: choices("Accepted signature algorithms.", SIGNING_ALGORITHMS, {
      default: ["RS256"],
      flag: "oidc-signing-algs",
    }),
    clockSkew: duration("Tolerated difference between the issuer's clock and the gateway's.", {
      default: "10s",
      from: "0s",
      to: "5m",
    }),
  },
  {
    keyField: "issuerURL",
    orphanFlag: (name) => (name === "oidc-client-id" ? "needs --oidc-issuer-url too" : undefined),
  },
);

const tokenReview = table(
  {
    ...reviewTargetFields(TOKEN_REVIEW_FLAG),
    version: choice("Version of the TokenReviews.", REVIEW_VERSIONS, {
      default: "v1",
      flag: "authentication-token-webhook-version",
      impliedBy: [implied(TOKEN_REVIEW_FLAG, "v1beta1")],
    }),
    audiences: strings("Audiences that tokens must have. Empty: the API server's own."),
    cacheTTL: duration("How long an accepted token is cached; a JWT never past its `exp`.", {
      as: "cacheTtlMs",
      default: "2m",
      ...TTL,
      flag: "authentication-token-webhook-cache-ttl",
    }),
    failureCacheTTL: duration("How long a refused token is cached. Keep it short: it may be new.", {
      as: "failureCacheTtlMs",
      default: "5s",
      ...TTL,
    }),
    maxCachedTokens: count(
      "Cached reviews of valid tokens, and as many of others. Past it the least recently used one is dropped.",
      {
        default: 8_192,
        from: 1,
        to: 1_000_000,
      },
    ),
    timeout: duration("One review, from the request to the complete response. Past it: 401.", {
      default: "10s",
      from: "100ms",
      to: "1h",
    }),
  },
  {
    keyField: "kubeconfigFile",
    orphanFlag: () => `needs authentication.tokenReview, or --${TOKEN_REVIEW_FLAG} too`,
  },
);

/** The authenticators in the order in which they are tried; an absent one accepts no caller. */
const fields = table({
  clientCAFile: file(
    "CA certificates that sign client certificates: the common name is the user, organizations are groups.",
    "certificates",
    { flag: "client-ca-file" },
  ),
  refuseSystemMasters: boolean(
    "Refuse client certificates of the group `system:masters`, which authorization cannot restrict.",
    { default: false },
  ),
  requestHeader: optionalSection(
    "A proxy that authenticates users itself, and has a client certificate that `clientCAFile` verifies.",
    requestHeader,
  ),
  tokenAuthFile: file('Static tokens: lines of `token,user,uid,"group1,group2"`.', "static tokens", {
    flag: "token-auth-file",
  }),
  oidc: optionalSection("Tokens of an OpenID Connect issuer, which Sluice verifies itself.", oidc),
  jwt: sections(
    "Issuers of tokens, as in Kubernetes' AuthenticationConfiguration; a token's `iss` selects one.",
    jwtAuthenticator,
  ),
  configurationFile: file(
    "The same issuers in a file: kube-apiserver's AuthenticationConfiguration.",
    "authentication configuration",
    { flag: "authentication-config" },
  ),
  tokenReview: optionalSection(
    "All other tokens, checked by TokenReviews of a Kubernetes API.",
    withTarget(tokenReview, "https://kubernetes.default.svc"),
  ),
  anonymous: section(
    "Requests without credentials.",
    table({
      enabled: boolean("Requests without credentials are `system:anonymous`; otherwise they get 401.", {
        default: false,
        flag: "anonymous-auth",
      }),
    }),
  ),
});

export const authentication = checked(fields, checkExclusive);

export type Authentication = ValueOf<typeof authentication>;
type OidcAuthentication = NonNullable<Authentication["oidc"]>;

/** Whether a request's credentials can identify a user. */
export function identifiesCallers({ clientCAFile, requestHeader, ...tokens }: Authentication): boolean {
  return clientCAFile !== undefined || requestHeader !== undefined || takesTokens(tokens);
}

export function takesTokens({
  configurationFile,
  jwt,
  oidc,
  tokenAuthFile,
  tokenReview,
}: Pick<Authentication, "configurationFile" | "jwt" | "oidc" | "tokenAuthFile" | "tokenReview">): boolean {
  const methods = [configurationFile, oidc, tokenAuthFile, tokenReview];
  return jwt.length > 0 || methods.some((method) => method !== undefined);
}

/** The `oidc` section's issuer, as kube-apiserver reads its --oidc flags. */
export function issuerOfOidc(oidc: OidcAuthentication): JwtIssuer {
  const { caFile, usernamePrefix, usernameClaim, issuerUrl } = oidc;
  // Two issuers may use the same name for two people, so the default prefix is the issuer.
  const usual = usernameClaim === "email" ? "" : `${issuerUrl}#`;
  return {
    ...oidc,
    discoveryUrl: undefined,
    authority: caFile === undefined ? undefined : { file: caFile },
    usernamePrefix: usernamePrefix === "-" ? "" : (usernamePrefix ?? usual),
    uidClaim: undefined,
  };
}

/** These exclude each other, like kube-apiserver's --authentication-config and --oidc flags. */
function checkExclusive({ configurationFile, jwt, oidc }: ValueOf<typeof fields>, at: Section): void {
  checkIssuers(jwt, at);
  const others = [...(jwt.length > 0 ? ["jwt"] : []), ...(oidc === undefined ? [] : ["oidc"])];
  if (configurationFile !== undefined && others.length > 0)
    at.problem("configurationFile", `must not stand beside ${others.join(" and ")}`);
  else if (others.length > 1) at.problem("jwt", "must not stand beside oidc: write its issuer here, too");
}

function claimsOf(text: string): Readonly<Record<string, string>> {
  const claims = text.split(",").map((item) => {
    const [claim = "", ...value] = item.trim().split("=");
    if (claim === "" || value.length === 0) throw new RangeError("must be claim=value");
    return [claim, value.join("=")] as const;
  });
  return Object.fromEntries(claims);
}

function checkHeaderName(name: string): string | undefined {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)
    ? undefined
    : `${JSON.stringify(name)} is not a header name`;
}

function checkIssuerUrl(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol !== "https:")
    return `must be an https URL, got ${JSON.stringify(withoutUserinfo(value).slice(0, 80))}`;
  const isBare = url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  return isBare ? undefined : "must have no credentials, query or fragment";
}
