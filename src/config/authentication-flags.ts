import {
  type Authentication,
  checkHeaderName,
  checkIssuerUrl,
  defaultOidc,
  defaultRequestHeader,
  type OidcAuthentication,
  type RequestHeaderAuthentication,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
  type TokenReviewAuthentication,
} from "./authentication.ts";
import { parseDuration } from "./duration.ts";
import { notAmong } from "./section.ts";

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
  "authentication-token-webhook-cache-ttl",
  "anonymous-auth",
] as const;
export type AuthenticationFlag = (typeof AUTHENTICATION_FLAGS)[number];

/** What the flags are read through: problems are noted under the flag's name, and reading goes on. */
export interface FlagReader {
  text(flag: AuthenticationFlag): string | undefined;
  file(flag: AuthenticationFlag): string | undefined;
  list(
    flag: AuthenticationFlag,
    fallback: readonly string[],
    check: (item: string) => string | undefined,
  ): readonly string[];
  refuse(flag: AuthenticationFlag, message: string): void;
}

const anything = (): undefined => undefined;

export function mergeAuthenticationFlags(file: Authentication, flags: FlagReader): Authentication {
  return {
    clientCAFile: flags.file("client-ca-file") ?? file.clientCAFile,
    requestHeader: requestHeader(file.requestHeader, flags),
    tokenAuthFile: flags.file("token-auth-file") ?? file.tokenAuthFile,
    oidc: oidc(file.oidc, flags),
    tokenReview: tokenReview(file.tokenReview, flags),
    anonymous: { enabled: isEnabled("anonymous-auth", file.anonymous.enabled, flags) },
  };
}

function requestHeader(
  file: RequestHeaderAuthentication | undefined,
  flags: FlagReader,
): RequestHeaderAuthentication | undefined {
  const clientCAFile = flags.file("requestheader-client-ca-file") ?? file?.clientCAFile;
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

function oidc(file: OidcAuthentication | undefined, flags: FlagReader): OidcAuthentication | undefined {
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
    caFile: flags.file("oidc-ca-file") ?? base.caFile,
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

/** kube-apiserver says in a kubeconfig where to ask; here the configuration file does, in `authentication.tokenReview`. */
function tokenReview(
  file: TokenReviewAuthentication | undefined,
  flags: FlagReader,
): TokenReviewAuthentication | undefined {
  const ttl = flags.text("authentication-token-webhook-cache-ttl");
  if (ttl === undefined) return file;
  if (file !== undefined) return { ...file, cacheTtlMs: durationOf(ttl, file.cacheTtlMs, flags) };
  flags.refuse(
    "authentication-token-webhook-cache-ttl",
    "needs authentication.tokenReview in the configuration file",
  );
  return undefined;
}

function durationOf(text: string, fallback: number, flags: FlagReader): number {
  try {
    const milliseconds = parseDuration(text);
    if (milliseconds >= 0) return milliseconds;
    flags.refuse("authentication-token-webhook-cache-ttl", "must not be negative");
  } catch (error) {
    flags.refuse(
      "authentication-token-webhook-cache-ttl",
      error instanceof Error ? error.message : String(error),
    );
  }
  return fallback;
}

function isEnabled(flag: AuthenticationFlag, fallback: boolean, flags: FlagReader): boolean {
  const value = flags.text(flag);
  if (value !== undefined && value !== "true" && value !== "false") {
    flags.refuse(flag, `must be true or false, got ${JSON.stringify(value)}`);
  }
  return value === undefined ? fallback : value === "true";
}
