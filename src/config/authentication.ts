import type { Section } from "./section.ts";
import {
  REVIEW_VERSIONS,
  type ReviewVersion,
  readWebhookTarget,
  type WebhookTarget,
} from "./webhook-target.ts";

/** Who is believed, and by what. Absent parts know nobody; kube-apiserver's flags of the same names stand above them. */
export interface Authentication {
  /** PEM bundle: whoever holds a client certificate from one of these authorities is the user of its common name. */
  readonly clientCAFile: string | undefined;
  readonly requestHeader: RequestHeaderAuthentication | undefined;
  /** CSV of `token,user,uid,"group1,group2"`, as kube-apiserver's --token-auth-file. Absent: nobody has a token. */
  readonly tokenAuthFile: string | undefined;
  readonly oidc: OidcAuthentication | undefined;
  readonly tokenReview: TokenReviewAuthentication | undefined;
  /** Whether requests without any credential are `system:anonymous`. Off: they are answered with 401. */
  readonly anonymous: { readonly enabled: boolean };
}

/** A proxy in front that has authenticated its users itself. Believed only behind a certificate of its own authority. */
export interface RequestHeaderAuthentication {
  readonly clientCAFile: string;
  /** The first header that is there and not blank names the user. */
  readonly usernameHeaders: readonly string[];
  readonly uidHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
  /** Common names that the proxy's certificate may have; none: any. */
  readonly allowedNames: readonly string[];
}

/** Tokens of an OpenID Connect issuer, verified here. */
export interface OidcAuthentication {
  /** The `iss` of its tokens, and where its discovery document is. https only. */
  readonly issuerUrl: string;
  /** A token must be for one of them. */
  readonly audiences: readonly string[];
  /** Authorities of the issuer's web server; absent: those that Node.js ships. */
  readonly caFile: string | undefined;
  readonly usernameClaim: string;
  /** Undefined: `<issuer>#` in front of every name but those from the claim `email`. `-`: nothing. */
  readonly usernamePrefix: string | undefined;
  readonly groupsClaim: string | undefined;
  readonly groupsPrefix: string;
  /** Claims that a token must have, with these values. */
  readonly requiredClaims: Readonly<Record<string, string>>;
  readonly signingAlgorithms: readonly SigningAlgorithm[];
  /** How far the issuer's clock and ours may differ. */
  readonly clockSkewMs: number;
}

/** Tokens that a Kubernetes API server is asked about. */
export interface TokenReviewAuthentication {
  /** Without a path, that of the Kubernetes API is meant: /apis/authentication.k8s.io/v1/tokenreviews. */
  readonly target: WebhookTarget;
  readonly version: ReviewVersion;
  /** Empty: the API server's own. */
  readonly audiences: readonly string[];
  /** How long a known token is believed. kube-apiserver's --authentication-token-webhook-cache-ttl. */
  readonly cacheTtlMs: number;
  /** How long an unknown one is not asked about again: short, for it may have been made a moment ago. */
  readonly failureCacheTtlMs: number;
  readonly maxCachedTokens: number;
  readonly timeoutMs: number;
}

/** Asymmetric ones only, as kube-apiserver has it: `none` and shared secrets can not be configured. */
export const SIGNING_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "ES256",
  "ES384",
  "ES512",
  "PS256",
  "PS384",
  "PS512",
] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

export const defaultRequestHeader: Omit<RequestHeaderAuthentication, "clientCAFile"> = {
  usernameHeaders: ["X-Remote-User"],
  uidHeaders: ["X-Remote-Uid"],
  groupHeaders: ["X-Remote-Group"],
  extraHeaderPrefixes: ["X-Remote-Extra-"],
  allowedNames: [],
};

export const defaultOidc: Omit<OidcAuthentication, "issuerUrl" | "audiences"> = {
  caFile: undefined,
  usernameClaim: "sub",
  usernamePrefix: undefined,
  groupsClaim: undefined,
  groupsPrefix: "",
  requiredClaims: {},
  signingAlgorithms: ["RS256"],
  clockSkewMs: 10_000,
};

export const defaultTokenReview = {
  cacheTtlMs: 120_000,
  failureCacheTtlMs: 5_000,
  maxCachedTokens: 8_192,
  timeoutMs: 10_000,
} as const;

const HOUR_MS = 3_600_000;

export function readAuthentication(section: Section): Authentication {
  const anonymous = section.section("anonymous");
  const authentication = {
    clientCAFile: section.optionalFile("clientCAFile", "certificates"),
    requestHeader: section.has("requestHeader")
      ? readRequestHeader(section.section("requestHeader"))
      : undefined,
    tokenAuthFile: section.optionalFile("tokenAuthFile", "text"),
    oidc: section.has("oidc") ? readOidc(section.section("oidc")) : undefined,
    tokenReview: section.has("tokenReview") ? readTokenReview(section.section("tokenReview")) : undefined,
    anonymous: { enabled: anonymous.boolean("enabled", false) },
  };
  anonymous.finish();
  section.finish();
  return authentication;
}

function readRequestHeader(section: Section): RequestHeaderAuthentication | undefined {
  const clientCAFile = requiredFile(section, "clientCAFile");
  const names = (name: keyof typeof defaultRequestHeader, check = checkHeaderName) =>
    section.strings(name, defaultRequestHeader[name], check);
  const rest = {
    usernameHeaders: names("usernameHeaders"),
    uidHeaders: names("uidHeaders"),
    groupHeaders: names("groupHeaders"),
    extraHeaderPrefixes: names("extraHeaderPrefixes"),
    allowedNames: names("allowedNames", () => undefined),
  };
  section.finish();
  return clientCAFile === undefined ? undefined : { clientCAFile, ...rest };
}

function readOidc(section: Section): OidcAuthentication | undefined {
  const issuerUrl = section.optionalString("issuerURL", checkIssuerUrl);
  if (!section.has("issuerURL"))
    section.problem("issuerURL", 'is required, such as "https://accounts.example.com"');
  const audiences = section.strings("audiences", [], () => undefined);
  if (audiences.length === 0)
    section.problem("audiences", "is required: without it tokens for others would do");
  const claims = section.section("requiredClaims");
  const rest = {
    caFile: section.optionalFile("caFile", "certificates"),
    usernameClaim: section.string("usernameClaim", defaultOidc.usernameClaim),
    usernamePrefix: section.optionalString("usernamePrefix"),
    groupsClaim: section.optionalString("groupsClaim"),
    groupsPrefix: section.string("groupsPrefix", defaultOidc.groupsPrefix),
    requiredClaims: readClaims(claims),
    signingAlgorithms: section.choices(
      "signingAlgorithms",
      defaultOidc.signingAlgorithms,
      SIGNING_ALGORITHMS,
    ),
    clockSkewMs: section.durationMs("clockSkew", defaultOidc.clockSkewMs, { min: 0, max: 5 * 60_000 }),
  };
  section.finish();
  return issuerUrl === undefined || audiences.length === 0 ? undefined : { issuerUrl, audiences, ...rest };
}

function readClaims(section: Section): Readonly<Record<string, string>> {
  const claims = section.entries().map(([name, value]) => {
    if (typeof value !== "string") section.problem(name, "must be a string");
    return [name, String(value)] as const;
  });
  return Object.fromEntries(claims);
}

function readTokenReview(section: Section): TokenReviewAuthentication | undefined {
  const target = readWebhookTarget(section, "https://kubernetes.default.svc");
  const { cacheTtlMs, failureCacheTtlMs, maxCachedTokens, timeoutMs } = defaultTokenReview;
  const rest = {
    version: section.choice("version", "v1", REVIEW_VERSIONS),
    audiences: section.strings("audiences", [], () => undefined),
    cacheTtlMs: section.durationMs("cacheTTL", cacheTtlMs, { min: 0, max: HOUR_MS }),
    failureCacheTtlMs: section.durationMs("failureCacheTTL", failureCacheTtlMs, { min: 0, max: HOUR_MS }),
    maxCachedTokens: section.count("maxCachedTokens", maxCachedTokens, { min: 1, max: 1_000_000 }),
    timeoutMs: section.durationMs("timeout", timeoutMs, { min: 100, max: HOUR_MS }),
  };
  section.finish();
  return target === undefined ? undefined : { target, ...rest };
}

function requiredFile(section: Section, name: string): string | undefined {
  const file = section.optionalFile(name, "certificates");
  if (!section.has(name)) section.problem(name, "is required");
  return file;
}

export function checkHeaderName(name: string): string | undefined {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)
    ? undefined
    : `${JSON.stringify(name)} is no header name`;
}

export function checkIssuerUrl(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol !== "https:") return `must be an https URL, got ${JSON.stringify(value.slice(0, 80))}`;
  const isBare = url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  return isBare ? undefined : "must have no credentials, query or fragment";
}
