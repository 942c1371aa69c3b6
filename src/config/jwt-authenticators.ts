import { withoutUserinfo } from "@sluice/client/internal/config/configuration-error";
import { checked, type Field, shaped, table } from "@sluice/client/internal/config/field";
import { choice, declare, string } from "@sluice/client/internal/config/fields";
import { certificatesOf } from "@sluice/client/internal/config/key-pair";
import type { Section } from "@sluice/client/internal/config/section";
import { optionalSection, section, sections, strings } from "./section-fields.ts";

/**
 * Only asymmetric algorithms, as in kube-apiserver: `none` and shared secrets cannot be configured.
 */
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

/** The number of token issuers, as in kube-apiserver. Past it the configuration is refused. */
const MAX_JWT_AUTHENTICATORS = 64;
const CLOCK_SKEW_MS = 10_000;
/**
 * Characters of a prefix or required value of an issuer's claims. Past it the configuration is
 * refused.
 */
const MAX_TEXT_CHARACTERS = 1_024;
const NO_CEL = "CEL expressions are not evaluated here; name a claim";

/**
 * A token issuer, and the meaning of its claims; from `authentication.oidc` or an entry of
 * `authentication.jwt`.
 */
export interface JwtIssuer {
  readonly issuerUrl: string;
  /** The URL of the discovery document; by default it is below the issuer's URL. */
  readonly discoveryUrl: string | undefined;
  /** Authorities for the issuer's web server; the default is Node.js' own list. */
  readonly authority: { readonly file: string } | { readonly pem: string } | undefined;
  readonly audiences: readonly string[];
  readonly usernameClaim: string;
  readonly usernamePrefix: string;
  readonly groupsClaim: string | undefined;
  readonly groupsPrefix: string;
  readonly uidClaim: string | undefined;
  readonly requiredClaims: Readonly<Record<string, string>>;
  readonly signingAlgorithms: readonly string[];
  readonly clockSkewMs: number;
}

/** May be empty, unlike the configuration's other strings. */
function text(sentence: string): Field<string | undefined, "*"> {
  return declare(sentence, {
    type: "string",
    schema: { type: "string" },
    read: (parent, name) =>
      parent.parsed(name, (value) => {
        if (typeof value !== "string") throw new RangeError("must be a string");
        if (value.length > MAX_TEXT_CHARACTERS)
          throw new RangeError(`must have at most ${MAX_TEXT_CHARACTERS} characters`);
        return value;
      }),
  });
}

/** A Kubernetes field that is refused if it is set, with the reason. */
export function refused(reason: string): Field<undefined, "*"> {
  return declare(`Refused: ${reason}.`, {
    type: "nothing",
    schema: { type: "null" },
    read: (parent, name) => (parent.has(name) ? parent.problem(name, reason) : undefined),
  });
}

const issuer = checked(
  table({
    url: string("The `iss` of its tokens, an https URL with the discovery document below it.", {
      required: "is required",
      check: checkUrl,
    }),
    discoveryURL: string("URL of the discovery document, if it is not below `url`.", { check: checkUrl }),
    certificateAuthority: string(
      "CA certificates (PEM) that sign the issuer's certificate. Absent: Node.js's own list.",
      { check: checkPem },
    ),
    audiences: strings("A token must name at least one of these audiences.", {
      required: "at least one is required",
    }),
    audienceMatchPolicy: choice("Required if there are several audiences.", ["MatchAny"]),
    egressSelectorType: refused("issuers are dialled directly, or through `egressProxy`"),
  }),
  ({ url, discoveryURL, audiences, audienceMatchPolicy }, at) => {
    for (const [index, audience] of audiences.entries())
      if (audiences.indexOf(audience) < index)
        at.problem("audiences", `duplicate value ${JSON.stringify(audience)}`);
    if (audiences.length > 1 && audienceMatchPolicy === undefined)
      at.problem("audienceMatchPolicy", "must be MatchAny for multiple audiences");
    if (discoveryURL !== undefined && withoutSlashes(discoveryURL) === withoutSlashes(url))
      at.problem("discoveryURL", "must be different from url");
  },
);

const prefixedClaim = table({
  claim: string("The name of the claim."),
  prefix: text("Prefix for the claim's values; required with `claim`, may be empty."),
  expression: refused(NO_CEL),
});

const username = checked(prefixedClaim, (values, at) => {
  if (values.claim === undefined && !at.has("expression")) at.problem("claim", "is required");
  checkPrefix(values, at);
});

const claimRule = checked(
  table({
    claim: string("The claim that a token must contain."),
    requiredValue: text("Its value. Absent: the empty string."),
    expression: refused(NO_CEL),
    message: refused("it belongs to expressions"),
  }),
  ({ claim }, at) => {
    if (claim === undefined && !at.has("expression")) at.problem("claim", "is required");
  },
);

const fields = table({
  issuer: section("The issuer of the tokens.", issuer),
  claimValidationRules: sections("Claims that a token must contain, with their values.", claimRule),
  claimMappings: section(
    "How claims become a user.",
    table({
      username: section("The user's name.", username),
      groups: optionalSection(
        "The user's groups, from a claim with a string or a list of strings. Absent: no groups.",
        checked(prefixedClaim, checkPrefix),
      ),
      uid: optionalSection(
        "The user's UID. Absent: none.",
        table({ claim: string("The name of the claim."), expression: refused(NO_CEL) }),
      ),
      extra: refused("values of extra attributes are CEL expressions, which are not evaluated here"),
    }),
  ),
  userValidationRules: refused("they are CEL expressions, which are not evaluated here"),
});

/** One issuer, in the shape of apiserver.config.k8s.io/v1's JWTAuthenticator. */
export const jwtAuthenticator = shaped(fields, (values, at): JwtIssuer => {
  const { issuer: from, claimMappings: mapped, claimValidationRules } = values;
  const { groups, uid } = mapped;
  const claims = claimValidationRules.map(({ claim = "" }) => claim);
  for (const [index, claim] of claims.entries())
    if (claim !== "" && claims.indexOf(claim) < index)
      at.item("claimValidationRules", index).problem("claim", `duplicate value ${JSON.stringify(claim)}`);
  return {
    issuerUrl: from.url,
    discoveryUrl: from.discoveryURL,
    authority: from.certificateAuthority === undefined ? undefined : { pem: from.certificateAuthority },
    audiences: from.audiences,
    usernameClaim: mapped.username.claim ?? "",
    usernamePrefix: mapped.username.prefix ?? "",
    groupsClaim: groups?.claim,
    groupsPrefix: groups?.prefix ?? "",
    uidClaim: uid?.claim,
    requiredClaims: Object.fromEntries(
      claimValidationRules.map(({ claim = "", requiredValue = "" }) => [claim, requiredValue]),
    ),
    signingAlgorithms: SIGNING_ALGORITHMS,
    clockSkewMs: CLOCK_SKEW_MS,
  };
});

/** Checks rules that concern several entries of `jwt`. */
export function checkIssuers(issuers: readonly JwtIssuer[], at: Section): void {
  if (issuers.length > MAX_JWT_AUTHENTICATORS)
    at.problem("jwt", `must have at most ${MAX_JWT_AUTHENTICATORS} items`);
  const noteDuplicates = (name: string, urls: readonly (string | undefined)[]): void => {
    for (const [index, url] of urls.entries())
      if (url !== undefined && url !== "" && urls.indexOf(url) < index)
        at.item("jwt", index).problem("issuer", `${name}: duplicate value ${JSON.stringify(url)}`);
  };
  noteDuplicates(
    "url",
    issuers.map(({ issuerUrl }) => issuerUrl),
  );
  noteDuplicates(
    "discoveryURL",
    issuers.map(({ discoveryUrl }) => discoveryUrl),
  );
}

function checkPrefix(
  { claim, prefix }: { readonly claim: string | undefined; readonly prefix: string | undefined },
  at: Section,
): void {
  if (claim !== undefined && prefix === undefined)
    at.problem(
      "prefix",
      "is required when claim is set. It can be set to an empty string to disable prefixing",
    );
}

/** kube-apiserver's rules for URLs of issuers and discovery documents. */
function checkUrl(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol !== "https:")
    return `must be an https URL, got ${JSON.stringify(withoutUserinfo(value).slice(0, 80))}`;
  if (url.username !== "" || url.password !== "") return "must not contain a username or password";
  if (url.search !== "") return "must not contain a query";
  return url.hash === "" ? undefined : "must not contain a fragment";
}

function checkPem(value: string): string | undefined {
  try {
    certificatesOf(value);
    return undefined;
  } catch (error) {
    return `has no certificates that can be read: ${(error as Error).message}`;
  }
}

function withoutSlashes(url: string): string {
  let end = url.length;
  while (end > 0 && url[end - 1] === "/") end -= 1;
  return url.slice(0, end);
}
