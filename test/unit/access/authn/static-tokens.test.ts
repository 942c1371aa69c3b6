import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../../packages/client/src/config/configuration-error.ts";
import { parseCsv, parseTokenFile, StaticTokens } from "../../../../src/access/authn/static-tokens.ts";

const file = `secret-a,alice,1,"dev,ops"
# no comment syntax,bob,2

"quo""ted, token",carol,3,admins,ignored
`;
const tokens = new StaticTokens(parseTokenFile(file, "tokens.csv"));
const nameOf = async (...headers: [string, string][]) => (await tokens.authenticate({ headers }))?.name;
const subprotocol = (token: string) =>
  `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}`;
const webSocket: [string, string][] = [
  ["Connection", "Upgrade"],
  ["Upgrade", "websocket"],
];

describe("StaticTokens", () => {
  it("knows users by their token, with their groups", async () => {
    const user = await tokens.authenticate({ headers: [["Authorization", "Bearer secret-a"]] });
    expect(user).toEqual({
      name: "alice",
      uid: "1",
      groups: ["dev", "ops", "system:authenticated"],
      extra: {},
    });
  });

  it.each<[header: string, name: string | undefined]>([
    ["bearer secret-a", "alice"],
    [" BEARER secret-a ", "alice"],
    ["Bearer secret-a trailing", "alice"],
    ["Bearer # no comment syntax", undefined],
    ["Bearer  secret-a", undefined],
    ["Bearer secret-A", undefined],
    ["Bearer secret", undefined],
    ["Bearer ", undefined],
    ["Basic secret-a", undefined],
    ["secret-a", undefined],
    ["", undefined],
  ])("Authorization: %s", async (header, name) => {
    expect(await nameOf(["authorization", header])).toBe(name);
  });

  it.each<[what: string, headers: [string, string][], name: string | undefined]>([
    [
      "a browser's token",
      [...webSocket, ["Sec-WebSocket-Protocol", `v5.channel.k8s.io, ${subprotocol('quo"ted, token')}`]],
      "carol",
    ],
    [
      "the header before the subprotocol",
      [
        ...webSocket,
        ["Authorization", "Bearer secret-a"],
        ["Sec-WebSocket-Protocol", `x, ${subprotocol("wrong")}`],
      ],
      "alice",
    ],
    [
      "the subprotocol after a wrong header",
      [
        ...webSocket,
        ["Authorization", "Bearer wrong"],
        ["Sec-WebSocket-Protocol", `x, ${subprotocol("secret-a")}`],
      ],
      "alice",
    ],
    ["a token alone", [...webSocket, ["Sec-WebSocket-Protocol", subprotocol("secret-a")]], undefined],
    [
      "two tokens",
      [...webSocket, ["Sec-WebSocket-Protocol", `x, ${subprotocol("secret-a")}, ${subprotocol("secret-a")}`]],
      undefined,
    ],
    ["no WebSocket", [["Sec-WebSocket-Protocol", `x, ${subprotocol("secret-a")}`]], undefined],
    [
      "only the first Authorization line",
      [
        ["Authorization", "Bearer wrong"],
        ["Authorization", "Bearer secret-a"],
      ],
      undefined,
    ],
  ])("%s", async (_, headers, name) => {
    expect(await nameOf(...headers)).toBe(name);
  });

  it("shows no token when it is printed", () => {
    expect(JSON.stringify(tokens) + String(Object.values(tokens))).not.toContain("secret");
  });
});

describe("parseTokenFile", () => {
  it.each([
    ['""\n', ["tokens.csv:1: token file must have at least 3 columns (token, user name, user uid), found 1"]],
    ...[
      'secret,"bob ",1',
      'secret,bob,"\t1"',
      'secret,bob,1,"dev,system:masters "',
      "secret,bo\u0007b,1",
    ].map((text): [string, string[]] => [
      text,
      ["tokens.csv:1: the user's name, uid or a group has white space at an end, or a control character"],
    ]),
    ["a,b", ["tokens.csv:1: token file must have at least 3 columns (token, user name, user uid), found 2"]],
    [",b,c", ["tokens.csv:1: the token is empty"]],
    ["secret,b,c\nx,y,z\nsecret,d,e\n", ["tokens.csv:3: duplicate token, it stands on line 1 already"]],
    ['secret"x,b,c', ['tokens.csv:1: record on line 1: bare " in non-quoted field']],
    ['ok,b,c\n"secret,b,c', ['tokens.csv:2: record on line 2: missing " at the end of a quoted field']],
    ['"secret"x,b,c', ['tokens.csv:1: record on line 1: extraneous or missing " in quoted field']],
  ])("refuses %j without repeating it", (text, problems) => {
    let thrown: unknown;
    try {
      parseTokenFile(text, "tokens.csv");
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(ConfigurationError);
    expect((thrown as ConfigurationError).message.split("\n")).toEqual(problems);
    expect((thrown as ConfigurationError).message).not.toContain("secret");
  });

  it("takes an empty file", () => {
    expect(parseTokenFile("\n\r\n", "tokens.csv")).toEqual([]);
  });
});

describe("parseCsv", () => {
  it("takes carriage returns as Go does", () => {
    const fieldsOf = (text: string) => parseCsv(text).map(({ fields }) => fields);
    expect(fieldsOf('a\rb,c\r\n"x\r\ny"\r')).toEqual([["a\rb", "c"], ["x\ny"]]);
    expect(fieldsOf('\r\n\r\r\n"a"\r\n')).toEqual([["\r"], ["a"]]);
    expect(fieldsOf("a,")).toEqual([["a", ""]]);
  });

  it("reads back whatever is written by RFC 4180", () => {
    const records = fc.array(
      fc.array(fc.string({ unit: fc.constantFrom("a", '"', ",", "\n", "\r\n", " ", "é") }), { minLength: 2 }),
    );
    fc.assert(
      fc.property(records, fc.constantFrom("\n", "\r\n"), (written, lineBreak) => {
        const text = written
          .map((fields) => fields.map((field) => `"${field.replaceAll('"', '""')}"`).join(","))
          .join(lineBreak);
        // Go's reader turns CRLF into LF inside quotes, too.
        const read = written.map((fields) => fields.map((field) => field.replaceAll("\r\n", "\n")));
        expect(parseCsv(text).map(({ fields }) => fields)).toEqual(read);
      }),
    );
  });

  it("counts lines inside quotes", () => {
    expect(parseCsv('"a\nb",c\r\n\nd,\n').map(({ line, fields }) => [line, ...fields])).toEqual([
      [1, "a\nb", "c"],
      [4, "d", ""],
    ]);
  });
});
