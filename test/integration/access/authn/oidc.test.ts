import { createHmac, createPublicKey, KeyObject, sign as signature } from "node:crypto";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { askHttpsUrl } from "../../../../packages/client/src/http/upstream/ask-json.ts";
import type { Attempt } from "../../../../src/access/authn/authenticator.ts";
import { OidcKeySet } from "../../../../src/access/authn/oidc-key-set.ts";
import { OidcTokens, userOfClaims } from "../../../../src/access/authn/oidc-tokens.ts";
import { defaultConfiguration } from "../../../../src/config/configuration.ts";
import { issuerOfOidc } from "../../../../src/config/sections/authentication.ts";
import { issueCertificate, type TestCertificate } from "../../../support/test-certificates.ts";

type OidcAuthentication = Parameters<typeof issuerOfOidc>[0];

// The bounds under test.
const KEY_SET_MAX_AGE_MS = 600_000;
const KEY_SET_FETCHES = 10;
const KEY_SET_FETCH_EVERY_MS = 1_000;
const ISSUER_COOLDOWN_MS = 5_000;

const defaultOidc = defaultConfiguration({
  "oidc-issuer-url": "https://i",
  "oidc-client-id": "a",
  "authorization-mode": "RBAC",
}).authentication.oidc as OidcAuthentication;

type Key = Awaited<ReturnType<typeof generateKeyPair>>;

describe("tokens of an OpenID Connect issuer", () => {
  let server: Server;
  let certificate: TestCertificate;
  let issuer: string;
  let first: Key;
  let second: Key;
  let stranger: Key;
  let published: object[];
  let asked: string[];
  let answerStatus: number;

  beforeAll(async () => {
    certificate = await issueCertificate({ commonName: "issuer" }, undefined, { addresses: ["127.0.0.1"] });
    [first, second, stranger] = (await Promise.all(
      [1, 2, 3].map(() => generateKeyPair("RS256", { extractable: true })),
    )) as [Key, Key, Key];
    server = createServer(certificate, (request, response) => {
      asked.push(request.url ?? "");
      response.statusCode = answerStatus;
      if (answerStatus !== 200) response.setHeader("Location", `${issuer}/elsewhere`);
      const isDiscovery = ["/.well-known/openid-configuration", "/elsewhere/document"].includes(
        request.url ?? "",
      );
      response.end(
        JSON.stringify(isDiscovery ? { issuer, jwks_uri: `${issuer}/keys` } : { keys: published }),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  beforeEach(async () => {
    asked = [];
    answerStatus = 200;
    published = [{ ...(await exportJWK(first.publicKey)), kid: "one", alg: "RS256", use: "sig" }];
  });

  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const tokensOf = (
    options: Partial<OidcAuthentication> & {
      readonly discoveryUrl?: string;
      readonly uidClaim?: string;
    } = {},
    nowMs?: () => number,
  ) => {
    const { discoveryUrl, uidClaim, ...others } = options;
    const oidc = {
      ...defaultOidc,
      issuerUrl: issuer,
      audiences: ["sluice"],
      groupsClaim: "groups",
      ...others,
    };
    const configured = { ...issuerOfOidc(oidc), discoveryUrl, uidClaim };
    const get = (url: string) => askHttpsUrl(url, certificate.cert, { timeoutMs: 5_000 });
    return new OidcTokens([{ issuer: configured, keySet: new OidcKeySet(configured, get, nowMs) }]);
  };

  const sign = (claims: JWTPayload = {}, { privateKey }: Key = first, header = {}) =>
    new SignJWT({ iss: issuer, aud: "sluice", sub: "jane", groups: ["dev"], exp: seconds(60), ...claims })
      .setProtectedHeader({ alg: "RS256", kid: "one", ...header })
      .sign(privateKey);

  const seconds = (fromNow: number) => Math.floor(Date.now() / 1_000) + fromNow;

  it("are their subject, with the issuer in front, and the groups of their claim", async () => {
    expect(await tokensOf().attemptToken(await sign())).toMatchObject({
      type: "known",
      user: { name: `${issuer}#jane`, uid: "", groups: ["dev"], extra: {} },
    });
  });

  it("have the expiry of their claims, and the time after it that they are still accepted", async () => {
    const exp = seconds(60);
    for (const clockSkewMs of [0, 30_000])
      expect(await tokensOf({ clockSkewMs }).attemptToken(await sign({ exp }))).toMatchObject({
        user: { expiresAtMs: exp * 1_000 + clockSkewMs },
      });
  });

  it("are verified with keys of a discovery document elsewhere, of the same issuer", async () => {
    const tokens = tokensOf({ discoveryUrl: `${issuer}/elsewhere/document` });
    expect((await tokens.attemptToken(await sign())).type).toBe("known");
    expect(asked).toEqual(["/elsewhere/document", "/keys"]);
  });

  it.each([
    [{ oid: "u-1" }, "u-1"],
    [{}, undefined],
    [{ oid: 5 }, undefined],
    [{ oid: null }, undefined],
  ])("have the UID of their claim, which is a string: %j", async (claims, uid) => {
    const attempt = await tokensOf({ uidClaim: "oid" }).attemptToken(await sign(claims));
    expect(attempt).toMatchObject(
      uid === undefined
        ? invalid("token-claims-wrong")
        : { type: "known", user: { name: `${issuer}#jane`, uid } },
    );
  });

  it("are good when they name no key and one of several fits", async () => {
    const { kid, ...one } = published[0] as { kid: string };
    published = [{ ...(await exportJWK(second.publicKey)), alg: "RS256" }, one];
    const attempt = await tokensOf().attemptToken(await sign({}, first, { kid: undefined }));
    expect(attempt.type).toBe("known");
    const wrong = await tokensOf().attemptToken(await sign({}, stranger, { kid: undefined }));
    expect(wrong).toEqual({ type: "invalid", fault: "token-signature-wrong" });
  });

  it("are verified with keys that were published a moment ago, also under a name that another key had", async () => {
    const tokens = tokensOf();
    const typeOf = async (token: string) => (await tokens.attemptToken(token)).type;
    expect(await typeOf(await sign())).toBe("known");
    published = [{ ...(await exportJWK(second.publicKey)), kid: "one", alg: "RS256" }];
    expect(await typeOf(await sign({}, second))).toBe("known");
    published = [{ ...(await exportJWK(stranger.publicKey)), kid: "three", alg: "RS256" }];
    expect(await typeOf(await sign({}, stranger, { kid: "three" }))).toBe("known");
    expect(await typeOf(await sign({}, second))).toBe("invalid");
  });

  it("that nobody signed have the keys fetched so often and no more, and hold up no valid one", async () => {
    let nowMs = 0;
    const tokens = tokensOf({}, () => nowMs);
    const [good, bad] = [await sign(), await sign({}, stranger)];
    const fetches = () => asked.filter((path) => path === "/keys").length;
    for (let times = 0; times < KEY_SET_FETCHES + 5; times += 1) {
      expect(await tokens.attemptToken(bad)).toEqual(invalid("token-signature-wrong"));
    }
    expect(fetches()).toBe(1 + KEY_SET_FETCHES);
    expect((await tokens.attemptToken(good)).type).toBe("known");
    nowMs += 2 * KEY_SET_FETCH_EVERY_MS;
    await Promise.all([1, 2, 3].map(() => tokens.attemptToken(bad)));
    expect(fetches()).toBe(2 + KEY_SET_FETCHES);
    // An issuer that is down takes no known key away.
    answerStatus = 500;
    nowMs += 2 * KEY_SET_MAX_AGE_MS;
    expect((await tokens.attemptToken(good)).type).toBe("known");
  });

  const signedText = (payload: string | Uint8Array, header: object = { alg: "RS256", kid: "one" }) =>
    signedParts(JSON.stringify(header), payload);
  /** Signed by the issuer, whatever the parts are. */
  const signedParts = (header: string, payload: string | Uint8Array) => {
    const input = `${Buffer.from(header).toString("base64url")}.${Buffer.from(payload).toString("base64url")}`;
    return `${input}.${signature("RSA-SHA256", Buffer.from(input), KeyObject.from(first.privateKey)).toString("base64url")}`;
  };
  /** Signed so by the issuer. */
  const withExtraCharacter = () => {
    const bytes = claimsText("");
    const whole = bytes.slice(0, -1).padEnd(Math.ceil(bytes.length / 3) * 3 - 1) + bytes.slice(-1);
    const [header, payload] = signedText(whole).split(".");
    const input = `${header}.${payload}A`;
    return `${input}.${signature("RSA-SHA256", Buffer.from(input), KeyObject.from(first.privateKey)).toString("base64url")}`;
  };
  const claimsText = (claims: string) =>
    `{"iss":${JSON.stringify(issuer)},"aud":"sluice","sub":"jane","exp":${seconds(60)}${claims}}`;

  it.each<[string, () => string, boolean]>([
    ["claims as they are", () => signedText(claimsText("")), true],
    ["an expiry of 1e999", () => signedText(claimsText(',"exp":1e999')), false],
    ["an expiry of 1e308", () => signedText(claimsText("").replace(/"exp":\d+/, '"exp":1e308')), false],
    ["no finite expiry", () => signedText(claimsText("").replace(/"exp":\d+/, '"exp":1e999')), false],
    ["a byte order mark", () => signedText(`\ufeff${claimsText("")}`), false],
    ["claims that are not UTF-8", () => signedText(Buffer.from(claimsText(',"x":"\xff"'), "latin1")), false],
    [
      "an audience that is a number",
      () => signedText(claimsText("").replace('"sluice"', '[1,"sluice"]')),
      false,
    ],
    ["two audiences", () => signedText(claimsText("").replace('"sluice"', '["x","sluice"]')), true],
    [
      "a header name twice",
      () => signedParts('{"alg":"none","kid":"one","alg":"RS256"}', claimsText("")),
      false,
    ],
    [
      "the same, escaped",
      () => signedParts('{"kid":"one","\\u0061lg":"none","alg":"RS256"}', claimsText("")),
      false,
    ],
    ["b64 without crit", () => signedText(claimsText(""), { alg: "RS256", kid: "one", b64: false }), false],
    ["a padded signature", () => `${signedText(claimsText(""))}=`, false],
    ["nbf 4 minutes ahead", () => signedText(claimsText(`,"nbf":${seconds(240)}`)), true],
    ["nbf 6 minutes ahead", () => signedText(claimsText(`,"nbf":${seconds(360)}`)), false],
    ["nbf null", () => signedText(claimsText(',"nbf":null')), true],
    ["an expiry beside one in capitals", () => signedText(claimsText(',"EXP":1')), false],
    [
      "an issuer beside one with a long s",
      () => signedText(claimsText(',"i\u017fs":"https://other"')),
      false,
    ],
    ["a name in capitals that nobody reads", () => signedText(claimsText(',"GROUPS":["x"]')), true],
    ["iat as a word", () => signedText(claimsText(',"iat":"yesterday"')), false],
    ["iat null", () => signedText(claimsText(',"iat":null')), false],
    ["iat of 1e999", () => signedText(claimsText(',"iat":1e999')), false],
    ["iat as digits", () => signedText(claimsText(',"iat":"1700000000"')), true],
    ["iat with a fraction", () => signedText(claimsText(',"iat":1700000000.5')), true],
    ["a nonce that is a number", () => signedText(claimsText(',"nonce":5')), false],
    ["at_hash that is a list", () => signedText(claimsText(',"at_hash":["x"]')), false],
    ["at_hash null", () => signedText(claimsText(',"at_hash":null')), true],
    [
      "a distributed claim without its source",
      () => signedText(claimsText(',"_claim_names":{"a":"b"}')),
      false,
    ],
    [
      "a distributed claim with its source",
      () =>
        signedText(claimsText(',"_claim_names":{"a":"b"},"_claim_sources":{"b":{"endpoint":"https://a"}}')),
      true,
    ],
    ["a key id that is a number", () => signedText(claimsText(""), { alg: "RS256", kid: 1 }), false],
    [
      "a nonce in the header that is a number",
      () => signedText(claimsText(""), { alg: "RS256", nonce: 1 }),
      false,
    ],
    ["a payload whose last character encodes nothing", () => withExtraCharacter(), false],
    ["nbf as text", () => signedText(claimsText(`,"nbf":"${seconds(-60)}"`)), false],
  ])("with %s", async (_, make, isTaken) => {
    expect((await tokensOf().attemptToken(make())).type).toBe(isTaken ? "known" : "invalid");
  });

  const wrong: readonly [string, () => Promise<string>, Attempt][] = [
    ["expired", () => sign({ exp: seconds(-60) }), invalid("token-expired")],
    ["without an expiry", () => sign({ exp: undefined as never }), invalid("token-claims-wrong")],
    ["not valid yet", () => sign({ nbf: seconds(360) }), invalid("token-not-yet-valid")],
    ["for somebody else", () => sign({ aud: "other" }), invalid("token-audience-wrong")],
    ["of another key with the same id", () => sign({}, stranger), invalid("token-signature-wrong")],
    ["of an unknown key", () => sign({}, stranger, { kid: "nope" }), invalid("token-key-unknown")],
    ["without a subject", () => sign({ sub: undefined as never }), invalid("token-claims-wrong")],
    ["with groups that are no list", () => sign({ groups: { a: 1 } }), invalid("token-claims-wrong")],
    ["with alg none", async () => unsigned({ alg: "none" }, ""), invalid("token-algorithm-not-allowed")],
    [
      "signed with the public key as a shared secret",
      async () => {
        const secret = createPublicKey({ key: await exportJWK(first.publicKey), format: "jwk" });
        const pem = secret.export({ type: "spki", format: "pem" });
        const input = unsigned({ alg: "HS256", kid: "one" }, "").slice(0, -1);
        return `${input}.${createHmac("sha256", pem).update(input).digest("base64url")}`;
      },
      invalid("token-algorithm-not-allowed"),
    ],
    [
      "with an unknown critical header",
      () =>
        sign({}, first, { crit: ["x"], x: 1 }).catch(() =>
          unsigned({ alg: "RS256", crit: ["x"], x: 1 }, "AA"),
        ),
      invalid("token-malformed"),
    ],
    [
      "with a changed payload",
      async () => withPayload(await sign(), { sub: "root" }),
      invalid("token-signature-wrong"),
    ],
    ["that is no JSON", async () => "e30.bm8.AA", invalid("token-malformed")],
    ["of another issuer", () => sign({ iss: "https://other" }), { type: "none" }],
    ["that is no JWT", async () => "opaque", { type: "none" }],
  ];

  it.each(wrong)("a token %s is not taken", async (_, make, expected) => {
    expect(await tokensOf().attemptToken(await make())).toEqual(expected);
  });

  it("a clock that is a little off does no harm", async () => {
    expect((await tokensOf().attemptToken(await sign({ exp: seconds(-5), nbf: seconds(5) }))).type).toBe(
      "known",
    );
  });

  it("an issuer that is down or redirects is not followed, and not asked again and again", async () => {
    answerStatus = 302;
    let nowMs = 0;
    const tokens = tokensOf({}, () => nowMs);
    const token = await sign();
    const attempts = await Promise.all([1, 2, 3].map(() => tokens.attemptToken(token)));
    expect(attempts).toEqual(attempts.map(() => invalid("authority-unreachable")));
    expect(await tokens.attemptToken(token)).toEqual(invalid("authority-unreachable"));
    expect(asked).toEqual(["/.well-known/openid-configuration"]);
    answerStatus = 200;
    nowMs = ISSUER_COOLDOWN_MS;
    expect((await tokens.attemptToken(token)).type).toBe("known");
  });

  it("an issuer with a certificate of nobody we know is not believed", async () => {
    const configured = issuerOfOidc({ ...defaultOidc, issuerUrl: issuer, audiences: ["sluice"] });
    const keySet = new OidcKeySet(configured, (url) => askHttpsUrl(url, undefined, { timeoutMs: 5_000 }));
    const tokens = new OidcTokens([{ issuer: configured, keySet }]);
    expect(await tokens.attemptToken(await sign())).toEqual(invalid("authority-unreachable"));
  });

  function unsigned(header: object, signature: string): string {
    const claims = { iss: issuer, aud: "sluice", sub: "root", exp: seconds(60) };
    return `${base64url(header)}.${base64url(claims)}.${signature}`;
  }

  function withPayload(token: string, claims: object): string {
    const [header, , signature] = token.split(".");
    return `${header}.${base64url({ iss: issuer, aud: "sluice", exp: seconds(60), ...claims })}.${signature}`;
  }
});

describe("claims", () => {
  const options = { ...defaultOidc, issuerUrl: "https://i" };
  it.each(["false", "true", null, 1, 0, [], {}])("email_verified %j confirms no address", (verified) => {
    const claims = { email: "a@b", email_verified: verified };
    expect(userOfClaims(claims, issuerOfOidc({ ...options, usernameClaim: "email" }))).toBeUndefined();
  });

  it.each([
    [{ email: "a@b", email_verified: true }, { usernameClaim: "email" }, "a@b"],
    [{ email: "a@b" }, { usernameClaim: "email" }, "a@b"],
    [{ email: "a@b", email_verified: false }, { usernameClaim: "email" }, undefined],
    [{ sub: "x" }, { usernamePrefix: "-" }, "x"],
    [{ sub: "x" }, { usernamePrefix: "oidc:" }, "oidc:x"],
    [{ sub: "x" }, { requiredClaims: { hd: "corp" } }, undefined],
    [{ sub: "x", hd: "corp" }, { requiredClaims: { hd: "corp" } }, "https://i#x"],
    [{}, { usernameClaim: "constructor" }, undefined],
  ])("%j with %j is %s", (claims, changes, name) => {
    expect(userOfClaims(claims, issuerOfOidc({ ...options, ...changes } as OidcAuthentication))?.name).toBe(
      name,
    );
  });

  it("a group may stand alone and gets its prefix", () => {
    const user = userOfClaims(
      { sub: "x", g: "dev" },
      issuerOfOidc({ ...options, groupsClaim: "g", groupsPrefix: "oidc:" }),
    );
    expect(user?.groups).toEqual(["oidc:dev"]);
  });
});

function invalid(fault: string): Attempt {
  return { type: "invalid", fault } as Attempt;
}

function base64url(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
