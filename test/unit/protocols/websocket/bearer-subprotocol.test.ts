import { describe, expect, it } from "vitest";
import { parseBearerSubprotocol, withoutBearerSubprotocols } from "../../../../protocols/websocket/index.ts";

const BEARER_SUBPROTOCOL_PREFIX = "base64url.bearer.authorization.k8s.io.";
const HEADER = "Sec-WebSocket-Protocol";
const bearer = (token: string | Uint8Array): string =>
  `${BEARER_SUBPROTOCOL_PREFIX}${Buffer.from(token).toString("base64url")}`;
const invalid = (message: string): object => ({ type: "invalid", message });

const rows = [
  { name: "no header", lines: [], answer: { type: "none" } },
  { name: "no token", lines: [HEADER, "a, b"], answer: { type: "none" } },
  {
    name: "token first",
    lines: [HEADER, `${bearer("secret-token")}, v5.channel.k8s.io`],
    answer: { type: "token", token: "secret-token", protocols: ["v5.channel.k8s.io"] },
  },
  {
    name: "token on its own line, the order of the others kept",
    lines: [HEADER, "a,b", "Cookie", "x", HEADER.toLowerCase(), bearer("t"), HEADER, "c"],
    answer: { type: "token", token: "t", protocols: ["a", "b", "c"] },
  },
  {
    name: "characters of base64url, and text beyond ASCII",
    lines: [HEADER, `${bearer("\ufeff?>~€")},a`],
    answer: { type: "token", token: "\ufeff?>~€", protocols: ["a"] },
  },
  { name: "an empty token", lines: [HEADER, `${BEARER_SUBPROTOCOL_PREFIX}, a`], answer: { type: "none" } },
  {
    name: "nothing else offered",
    lines: [HEADER, bearer("t")],
    answer: invalid("missing additional subprotocol"),
  },
  {
    name: "two tokens",
    lines: [HEADER, `${bearer("t")}, a, ${bearer("t")}`],
    answer: invalid("multiple base64.bearer.authorization tokens specified"),
  },
  ...["dA==", "d", "d+/A", "d.A", "d A"].map((encoded) => ({
    name: `encoding ${encoded}`,
    lines: [HEADER, `${BEARER_SUBPROTOCOL_PREFIX}${encoded}, a`],
    answer: invalid("invalid base64.bearer.authorization token encoding"),
  })),
  {
    name: "a token that is not UTF-8",
    lines: [HEADER, `${bearer(Uint8Array.of(0xc3, 0x28))}, a`],
    answer: invalid("invalid base64.bearer.authorization token"),
  },
  {
    name: "the prefix in another case is a name like any other",
    lines: [HEADER, `${bearer("t").toUpperCase()}, a`],
    answer: { type: "none" },
  },
];

describe("parseBearerSubprotocol", () => {
  it.each(rows)("$name", ({ lines, answer }) => {
    expect(parseBearerSubprotocol(lines)).toEqual(answer);
  });
});

describe("withoutBearerSubprotocols", () => {
  it("drops every one, valid or not", () => {
    const offered = ["a", bearer("t"), `${BEARER_SUBPROTOCOL_PREFIX}!!`, BEARER_SUBPROTOCOL_PREFIX, "b"];
    expect(withoutBearerSubprotocols(offered)).toEqual(["a", "b"]);
  });
});
