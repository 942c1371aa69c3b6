import { describe, expect, it } from "vitest";
import { defaultConfiguration, parseConfiguration } from "../../../src/config/configuration.ts";
import { parseAuthenticationFile } from "../../../src/config/named-files.ts";
import { issuerOfOidc } from "../../../src/config/sections/authentication.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

type OidcAuthentication = Parameters<typeof issuerOfOidc>[0];

// The bound under test.
const MAX_JWT_AUTHENTICATORS = 64;

const FILE = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
const issuer = { url: "https://a.example.com", audiences: ["sluice"] };
const username = { claim: "sub", prefix: "" };
const entry = (changes: object = {}): object => ({ issuer, claimMappings: { username }, ...changes });
const mapped = (mappings: object): object => entry({ claimMappings: { username, ...mappings } });
const read = (...jwt: object[]) => parseAuthenticationFile(`${FILE}jwt: ${JSON.stringify(jwt)}`, "auth.yaml");

describe("issuers in the shape of an AuthenticationConfiguration", () => {
  it("are read, in the configuration and in a file of kube-apiserver's", () => {
    const jwt = [
      entry({
        issuer: {
          url: "https://a.example.com",
          discoveryURL: "https://inside.example.com/openid",
          audiences: ["sluice", "kubectl"],
          audienceMatchPolicy: "MatchAny",
        },
        claimValidationRules: [{ claim: "hd", requiredValue: "corp" }, { claim: "empty" }],
        claimMappings: {
          username: { claim: "email", prefix: "a:" },
          groups: { claim: "roles", prefix: "" },
          uid: { claim: "oid" },
        },
      }),
      entry({ issuer: { url: "https://b.example.com", audiences: ["sluice"] } }),
    ];
    const found = read(...jwt);
    expect(found).toEqual([
      {
        issuerUrl: "https://a.example.com",
        discoveryUrl: "https://inside.example.com/openid",
        authority: undefined,
        audiences: ["sluice", "kubectl"],
        usernameClaim: "email",
        usernamePrefix: "a:",
        groupsClaim: "roles",
        groupsPrefix: "",
        uidClaim: "oid",
        requiredClaims: { hd: "corp", empty: "" },
        signingAlgorithms: ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"],
        clockSkewMs: 10_000,
      },
      expect.objectContaining({
        issuerUrl: "https://b.example.com",
        usernamePrefix: "",
        uidClaim: undefined,
      }),
    ]);
    const configuration = `apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\nauthorization: { mode: [RBAC] }\nauthentication: ${JSON.stringify({ jwt })}`;
    expect(parseConfiguration(configuration, "f.yaml").authentication.jwt).toEqual(found);
  });

  it("have authorities of their own, in PEM", async () => {
    const { cert } = await issueCertificate({ commonName: "issuer" });
    expect(read(entry({ issuer: { ...issuer, certificateAuthority: cert } }))[0]?.authority).toEqual({
      pem: cert,
    });
  });

  // Each is refused by k8s.io/apiserver's validation, too.
  it.each([
    [entry({ issuer: { audiences: ["a"] } }), "issuer.url: is required"],
    [entry({ issuer: { ...issuer, url: "http://a" } }), "issuer.url: must be an https URL"],
    [entry({ issuer: { ...issuer, url: "https://u:p@a" } }), "url: must not contain a username or password"],
    [entry({ issuer: { ...issuer, url: "https://a?b" } }), "url: must not contain a query"],
    [entry({ issuer: { ...issuer, url: "https://a#b" } }), "url: must not contain a fragment"],
    [
      entry({ issuer: { ...issuer, discoveryURL: "https://a.example.com/" } }),
      "discoveryURL: must be different from url",
    ],
    [entry({ issuer: { ...issuer, discoveryURL: "http://a" } }), "discoveryURL: must be an https URL"],
    [entry({ issuer: { ...issuer, audiences: [] } }), "audiences: at least one is required"],
    [entry({ issuer: { ...issuer, audiences: [""] } }), "audiences[0]: must not be empty"],
    [
      entry({ issuer: { ...issuer, audiences: ["a", "a"], audienceMatchPolicy: "MatchAny" } }),
      'duplicate value "a"',
    ],
    [entry({ issuer: { ...issuer, audiences: ["a", "b"] } }), "must be MatchAny for multiple audiences"],
    [entry({ issuer: { ...issuer, audienceMatchPolicy: "MatchAll" } }), '"MatchAll" is not supported'],
    [
      entry({ issuer: { ...issuer, certificateAuthority: "none" } }),
      "certificateAuthority: has no certificates",
    ],
    [entry({ claimMappings: {} }), "username.claim: is required"],
    [
      entry({ claimMappings: { username: { claim: "sub" } } }),
      "username.prefix: is required when claim is set",
    ],
    [mapped({ groups: { claim: "groups" } }), "groups.prefix: is required when claim is set"],
    [entry({ claimValidationRules: [{}] }), "claimValidationRules[0].claim: is required"],
    [entry({ claimValidationRules: [{ claim: "a" }, { claim: "a" }] }), 'claim: duplicate value "a"'],
    [entry({ claimValidationRules: [{ claim: "a", message: "no" }] }), "message: it belongs to expressions"],
    [entry({ claimMapping: {} }), "unknown field"],
  ])("are refused as by an API server: %j", (jwt, problem) => {
    expect(() => read(jwt)).toThrow(problem);
  });

  it.each([
    [
      mapped({ username: { expression: "claims.sub" } }),
      "username.expression: CEL expressions are not evaluated",
    ],
    [mapped({ groups: { expression: "claims.g" } }), "groups.expression: CEL expressions are not evaluated"],
    [mapped({ uid: { expression: "claims.g" } }), "uid.expression: CEL expressions are not evaluated"],
    [mapped({ extra: [{ key: "a.b/c", valueExpression: "claims.c" }] }), "extra: values of extra attributes"],
    [
      entry({ claimValidationRules: [{ expression: "true" }] }),
      "expression: CEL expressions are not evaluated",
    ],
    [
      entry({ userValidationRules: [{ expression: "true" }] }),
      "userValidationRules: they are CEL expressions",
    ],
    [
      entry({ issuer: { ...issuer, egressSelectorType: "cluster" } }),
      "egressSelectorType: issuers are dialled",
    ],
  ])("are refused where they need what is not here, with the reason: %j", (jwt, problem) => {
    expect(() => read(jwt)).toThrow(problem);
  });

  it("differ from each other", () => {
    expect(() => read(entry(), entry())).toThrow(
      'jwt[1].issuer: url: duplicate value "https://a.example.com"',
    );
    const discoveryURL = "https://inside";
    const [one, other] = ["https://a", "https://b"].map((url) =>
      entry({ issuer: { ...issuer, url, discoveryURL } }),
    );
    expect(() => read(one as object, other as object)).toThrow(
      'discoveryURL: duplicate value "https://inside"',
    );
  });

  it("have prefixes of 1,024 characters at most", () => {
    const withPrefix = (length: number) => mapped({ username: { claim: "sub", prefix: "a".repeat(length) } });
    expect(read(withPrefix(1_024))).toHaveLength(1);
    expect(() => read(withPrefix(1_025))).toThrow("prefix: must have at most 1024 characters");
  });

  it("are 64 at most", () => {
    const many = Array.from({ length: MAX_JWT_AUTHENTICATORS + 1 }, (_, index) =>
      entry({ issuer: { ...issuer, url: `https://${index}.example.com` } }),
    );
    expect(read(...many.slice(1))).toHaveLength(MAX_JWT_AUTHENTICATORS);
    expect(() => read(...many)).toThrow("jwt: must have at most 64 items");
  });

  it.each([
    ["kind: AuthenticationConfiguration", "apiVersion: is required"],
    [FILE.replace("v1", "v2"), '"apiserver.config.k8s.io/v2" is not supported'],
    [
      `${FILE}anonymous: { enabled: true }`,
      "anonymous.enabled: is set by authentication.anonymous of the gateway",
    ],
    [
      `${FILE}anonymous: { enabled: false, conditions: [{ path: /livez }] }`,
      "anonymous.conditions: requests without",
    ],
  ])("stand in a file of the right kind: %j", (text, problem) => {
    expect(() => parseAuthenticationFile(text, "auth.yaml")).toThrow(problem);
  });

  it("may be none yet", () => {
    expect(parseAuthenticationFile(`${FILE}jwt: []\nanonymous: { enabled: false }`, "auth.yaml")).toEqual([]);
  });

  it.each([
    [{ "authentication-config": "a.yaml", "oidc-issuer-url": "https://i", "oidc-client-id": "a" }, "oidc"],
    [{ "authentication-config": "a.yaml" }, undefined],
  ])("exclude --oidc flags, as in kube-apiserver: %j", (flags, other) => {
    const parse = () => defaultConfiguration({ ...flags, "authorization-mode": "RBAC" });
    if (other === undefined) expect(parse().authentication.configurationFile).toMatch(/a\.yaml$/);
    else expect(parse).toThrow(`must not stand beside ${other}`);
  });

  it("need an authorization mode, as any authentication does", () => {
    expect(() => defaultConfiguration({ "authentication-config": "a.yaml" })).toThrow("authorization.mode");
  });
});

describe("the issuer of --oidc flags", () => {
  const oidc = defaultConfiguration({
    "oidc-issuer-url": "https://i",
    "oidc-client-id": "a",
    "authorization-mode": "RBAC",
  }).authentication.oidc as OidcAuthentication;

  it.each([
    [{}, "https://i#"],
    [{ usernameClaim: "email" }, ""],
    [{ usernamePrefix: "-" }, ""],
    [{ usernamePrefix: "o:", usernameClaim: "email" }, "o:"],
  ])("has its URL before names, unless told otherwise: %j", (changes, prefix) => {
    expect(issuerOfOidc({ ...oidc, ...changes }).usernamePrefix).toBe(prefix);
  });
});
