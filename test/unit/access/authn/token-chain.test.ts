import { describe, expect, it } from "vitest";
import {
  type Attempt,
  AuthenticatorChain,
  invalidCredential,
  NO_CREDENTIAL,
  type TokenAuthenticator,
} from "../../../../src/access/authn/authenticator.ts";
import { BearerTokens, SubprotocolTokens, TokenChain } from "../../../../src/access/authn/bearer-tokens.ts";

const USER = { name: "u", uid: "", groups: ["g"], extra: {} };

function says(attempt: Attempt, asked: string[] = []): TokenAuthenticator {
  return {
    attemptToken: async (token) => {
      asked.push(token);
      return attempt;
    },
  };
}

const webSocket = (protocols: string): [string, string][] => [
  ["Connection", "Upgrade"],
  ["Upgrade", "websocket"],
  ["Sec-WebSocket-Protocol", protocols],
];

describe("tokens", () => {
  it("a token past the bound is not shown to anybody", async () => {
    const asked: string[] = [];
    const chain = new TokenChain([says(NO_CREDENTIAL, asked)], 8);
    expect(await chain.attemptToken("é".repeat(5))).toEqual(invalidCredential("token-oversized"));
    expect(await chain.attemptToken("é".repeat(4))).toEqual(NO_CREDENTIAL);
    expect(asked).toHaveLength(1);
  });

  it("one that is wrong here may be right there; the first fault is told when it is nowhere", async () => {
    const expired = says(invalidCredential("token-expired"));
    const known = says({ type: "known", user: USER });
    expect(await new TokenChain([expired, known], 100).attemptToken("t")).toEqual({
      type: "known",
      user: USER,
    });
    const down = says(invalidCredential("authority-unreachable"));
    expect(await new TokenChain([expired, down], 100).attemptToken("t")).toEqual(
      invalidCredential("token-expired"),
    );
  });
});

describe("the chain", () => {
  it.each<[what: string, user: Partial<typeof USER> & { extra?: Record<string, string[]> }]>([
    ["a name with a blank at its end", { name: "u " }],
    ["a name with a no-break space", { name: "\u00a0u" }],
    ["a name with a lone surrogate", { name: "ann\ud800" }],
    ["a uid with a tab", { uid: "1\t" }],
    ["a group with a blank", { groups: ["dev", "system:masters "] }],
    ["a group with ESC", { groups: ["de\u001bv"] }],
    ["a group with C1", { groups: ["de\u009bv"] }],
    ["an extra with a line break", { extra: { "acme.io/a": ["x\ny"] } }],
    ["a key of extra with a blank", { extra: { "acme.io/a ": ["x"] } }],
  ])("knows no user with %s", async (_, parts) => {
    const user = { ...USER, ...parts };
    const results: string[] = [];
    const chain = new AuthenticatorChain({
      authenticators: [new BearerTokens(says({ type: "known", user }))],
      isAnonymousAllowed: true,
      onResult: (result) => results.push(result),
    });
    expect(await chain.authenticate({ headers: [["Authorization", "Bearer t"]] })).toBeUndefined();
    expect(results).toEqual(["identity-malformed"]);
  });

  it("knows users with blanks and letters of any script inside", async () => {
    const user = { name: "Zoë à", uid: "", groups: ["d e v", "团队", "😀"], extra: {} };
    const chain = new AuthenticatorChain({
      authenticators: [new BearerTokens(says({ type: "known", user }))],
      isAnonymousAllowed: false,
    });
    expect((await chain.authenticate({ headers: [["Authorization", "Bearer t"]] }))?.name).toBe("Zoë à");
  });

  const resultsOf = async (
    headers: [string, string][],
    isAnonymousAllowed: boolean,
    answer: Attempt = NO_CREDENTIAL,
  ) => {
    const results: string[] = [];
    const tokens = new TokenChain([says(answer)], 100);
    const chain = new AuthenticatorChain({
      authenticators: [new BearerTokens(tokens), new SubprotocolTokens(tokens)],
      isAnonymousAllowed,
      onResult: (result) => results.push(result),
    });
    return { user: await chain.authenticate({ headers }), results };
  };

  it("lets nobody in without credentials, unless anonymous is on", async () => {
    expect(await resultsOf([], false)).toEqual({ user: undefined, results: ["no-credentials"] });
    expect(await resultsOf([], true)).toEqual({
      user: { name: "system:anonymous", uid: "", groups: ["system:unauthenticated"], extra: {} },
      results: ["anonymous"],
    });
  });

  it.each([
    ["an unknown token", [["Authorization", "Bearer x"]] as [string, string][], "token-unknown"],
    [
      "two subprotocol tokens",
      webSocket(`${bearer("a")}, ${bearer("b")}, v5.channel.k8s.io`),
      "subprotocol-malformed",
    ],
    ["a subprotocol token alone", webSocket(bearer("a")), "subprotocol-malformed"],
    ["a subprotocol token that is no base64url", webSocket(`${bearer("a")}!, x`), "subprotocol-malformed"],
    ["an unknown subprotocol token", webSocket(`${bearer("a")}, x`), "token-unknown"],
  ])("does not make anonymous of %s", async (_, headers, fault) => {
    expect(await resultsOf(headers, true)).toEqual({ user: undefined, results: [fault] });
  });

  it("knows a browser by its subprotocol, and says once that it does", async () => {
    const known: Attempt = { type: "known", user: USER };
    expect(await resultsOf(webSocket(`${bearer("a")}, v5.channel.k8s.io`), false, known)).toEqual({
      user: { ...USER, groups: ["g", "system:authenticated"] },
      results: ["authenticated"],
    });
  });
});

function bearer(token: string): string {
  return `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}`;
}
