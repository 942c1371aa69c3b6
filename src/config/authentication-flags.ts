import {
  type Authentication,
  checkHeaderName,
  checkIssuerUrl,
  defaultOidc,
  defaultRequestHeader,
  defaultTokenReview,
  type OidcAuthentication,
  type RequestHeaderAuthentication,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
  type TokenReviewAuthentication,
} from "./authentication.ts";
import { booleanFlag, choiceFlag, durationFlag, type FlagReader } from "./flag-values.ts";
import { notAmong } from "./section.ts";
import { REVIEW_VERSIONS } from "./webhook-target.ts";

/** kube-apiserver's flags about who a caller is. */
export const AUTHENTICATION_FLAGS = [
  "client-ca-file",
  "requestheader-client-ca-file",
  "requestheader-username-headers",
  "requestheader-uid-headers",
  "requestheader-group-headers",
  "requestheader-extra-headers-prefix",
  "requestheader-allowed-names",
  "token-auth-file",
  "oidc-issuer-url",
  "oidc-client-id",
  "oidc-ca-file",
  "oidc-username-claim",
  "oidc-username-prefix",
  "oidc-groups-claim",
  "oidc-groups-prefix",
  "oidc-required-claim",
  "oidc-signing-algs",
  "authentication-token-webhook-config-file",
  "authentication-token-webhook-version",
  "authentication-token-webhook-cache-ttl",
  "anonymous-auth",
] as const;
export type AuthenticationFlag = (typeof AUTHENTICATION_FLAGS)[number];

type Flags = FlagReader<AuthenticationFlag>;

const anything = (): undefined => undefined;

export function mergeAuthenticationFlags(file: Authentication, flags: Flags): Authentication {
  return {
    clientCAFile: flags.file("client-ca-file", "certificates") ?? file.clientCAFile,
    requestHeader: requestHeader(file.requestHeader, flags),
    tokenAuthFile: flags.file("token-auth-file", "text") ?? file.tokenAuthFile,
    oidc: oidc(file.oidc, flags),
    tokenReview: tokenReview(file.tokenReview, flags),
    anonymous: { enabled: booleanFlag("anonymous-auth", flags) ?? file.anonymous.enabled },
  };
}

function requestHeader(
  file: RequestHeaderAuthentication | undefined,
  flags: Flags,
): RequestHeaderAuthentication | undefined {
  const clientCAFile = flags.file("requestheader-client-ca-file", "certificates") ?? file?.clientCAFile;
  const { usernameHeaders, uidHeaders, groupHeaders, extraHeaderPrefixes, allowedNames } =
    file ?? defaultRequestHeader;
  const merged = {
    usernameHeaders: flags.list("requestheader-username-headers", usernameHeaders, checkHeaderName),
    uidHeaders: flags.list("requestheader-uid-headers", uidHeaders, checkHeaderName),
    groupHeaders: flags.list("requestheader-group-headers", groupHeaders, checkHeaderName),
    extraHeaderPrefixes: flags.list(
      "requestheader-extra-headers-prefix",
      extraHeaderPrefixes,
      checkHeaderName,
    ),
    allowedNames: flags.list("requestheader-allowed-names", allowedNames, anything),
  };
  // Without an authority anybody could claim to be the proxy, so the headers then mean nothing.
  return clientCAFile === undefined ? undefined : { clientCAFile, ...merged };
}

function oidc(file: OidcAuthentication | undefined, flags: Flags): OidcAuthentication | undefined {
  const issuerUrl = flags.text("oidc-issuer-url") ?? file?.issuerUrl;
  const audiences = flags.list("oidc-client-id", file?.audiences ?? [], anything);
  if (issuerUrl === undefined) {
    if (audiences.length > 0) flags.refuse("oidc-client-id", "needs --oidc-issuer-url too");
    return undefined;
  }
  const wrong = checkIssuerUrl(issuerUrl);
  if (wrong !== undefined) flags.refuse("oidc-issuer-url", wrong);
  if (audiences.length === 0) flags.refuse("oidc-issuer-url", "needs --oidc-client-id too");
  const base = file ?? defaultOidc;
  const claims = flags
    .list("oidc-required-claim", [], (item) => (item.indexOf("=") > 0 ? undefined : "must be claim=value"))
    .map((item) => [item.slice(0, item.indexOf("=")), item.slice(item.indexOf("=") + 1)] as const);
  return {
    issuerUrl,
    audiences,
    caFile: flags.file("oidc-ca-file", "certificates") ?? base.caFile,
    usernameClaim: flags.text("oidc-username-claim") ?? base.usernameClaim,
    usernamePrefix: flags.text("oidc-username-prefix") ?? base.usernamePrefix,
    groupsClaim: flags.text("oidc-groups-claim") ?? base.groupsClaim,
    groupsPrefix: flags.text("oidc-groups-prefix") ?? base.groupsPrefix,
    requiredClaims: claims.length > 0 ? Object.fromEntries(claims) : base.requiredClaims,
    signingAlgorithms: flags.list("oidc-signing-algs", base.signingAlgorithms, (item) =>
      notAmong(item, SIGNING_ALGORITHMS),
    ) as SigningAlgorithm[],
    clockSkewMs: base.clockSkewMs,
  };
}

function tokenReview(
  file: TokenReviewAuthentication | undefined,
  flags: Flags,
): TokenReviewAuthentication | undefined {
  const kubeconfig = flags.file("authentication-token-webhook-config-file", "webhook kubeconfig");
  const version = choiceFlag("authentication-token-webhook-version", flags, REVIEW_VERSIONS);
  const cacheTtlMs = durationFlag("authentication-token-webhook-cache-ttl", flags);
  const base: TokenReviewAuthentication | undefined =
    kubeconfig === undefined
      ? file
      : {
          audiences: [],
          ...(file ?? defaultTokenReview),
          target: { kind: "kubeconfig", file: kubeconfig },
          version: "v1beta1",
        };
  if (base === undefined) {
    for (const name of [
      "authentication-token-webhook-version",
      "authentication-token-webhook-cache-ttl",
    ] as const) {
      if (flags.text(name) !== undefined) {
        flags.refuse(
          name,
          "needs authentication.tokenReview, or --authentication-token-webhook-config-file too",
        );
      }
    }
    return undefined;
  }
  return { ...base, version: version ?? base.version, cacheTtlMs: cacheTtlMs ?? base.cacheTtlMs };
}
