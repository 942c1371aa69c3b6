import { describe, expect, it } from "vitest";
import {
  checkServerHandshake,
  encodeSwitchingProtocols,
  FORBIDDEN_RESPONSE,
  hasWebSocketTokens,
  isWebSocketUpgrade,
  negotiateSubprotocol,
  offeredSubprotocols,
  tokenList,
} from "../../../../protocols/websocket/index.ts";

describe("tokenList", () => {
  it.each([
    { values: [], tokens: [] },
    { values: [""], tokens: [] },
    { values: ["a"], tokens: ["a"] },
    { values: ["a,b ,\tc", " D "], tokens: ["a", "b", "c", "D"] },
    { values: [",a,, b,"], tokens: ["a", "b"] },
    { values: ["a\u00a0,b"], tokens: ["a\u00a0", "b"] },
  ])("$values", ({ values, tokens }) => {
    expect(tokenList(values)).toEqual(tokens);
  });
});

/** Kubernetes looks for a substring in any Connection line; RFC 6455 for tokens. Header names have any case. */
const upgrades = [
  { lines: ["Upgrade", "websocket", "Connection", "Upgrade"], kubernetes: true, rfc: true },
  { lines: ["upgrade", "WebSocket", "CONNECTION", "upgrade"], kubernetes: true, rfc: true },
  { lines: ["Upgrade", "websocket", "Connection", "keep-alive, Upgrade"], kubernetes: true, rfc: true },
  {
    lines: ["Connection", "keep-alive", "Connection", "upgrade", "Upgrade", "websocket"],
    kubernetes: true,
    rfc: true,
  },
  { lines: ["Upgrade", "websocket", "Connection", "no-upgrade-please"], kubernetes: true, rfc: false },
  { lines: ["Upgrade", "h2c, websocket", "Connection", "Upgrade"], kubernetes: false, rfc: true },
  {
    lines: ["Upgrade", "h2c", "Upgrade", "websocket", "Connection", "Upgrade"],
    kubernetes: false,
    rfc: true,
  },
  { lines: ["Upgrade", "SPDY/3.1", "Connection", "Upgrade"], kubernetes: false, rfc: false },
  { lines: ["Upgrade", "websockets", "Connection", "Upgrade"], kubernetes: false, rfc: false },
  { lines: ["Upgrade", "websocket"], kubernetes: false, rfc: false },
  { lines: ["Connection", "Upgrade"], kubernetes: false, rfc: false },
  { lines: [], kubernetes: false, rfc: false },
];

describe("what counts as a WebSocket request", () => {
  it.each(upgrades)("$lines", ({ lines, kubernetes, rfc }) => {
    expect(isWebSocketUpgrade(lines)).toBe(kubernetes);
    expect(hasWebSocketTokens(lines)).toBe(rfc);
  });
});

const UPGRADE = ["Host", "a", "Upgrade", "websocket", "Connection", "Upgrade"];
const KEY = ["Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="];
const VERSION = ["Sec-WebSocket-Version", "13"];
const badVersion = {
  ok: false,
  status: 400,
  headers: [["Sec-WebSocket-Version", "13"]],
  body: "missing or bad WebSocket Version",
};
const badKey = { ok: false, status: 400, headers: [], body: "mismatch challenge/response" };

const handshakes = [
  {
    name: "complete",
    lines: [...UPGRADE, ...KEY, ...VERSION, "Sec-WebSocket-Protocol", "v5.channel.k8s.io, v4.channel.k8s.io"],
    answer: { ok: true, key: KEY[1], protocols: ["v5.channel.k8s.io", "v4.channel.k8s.io"] },
  },
  {
    name: "no subprotocol",
    lines: [...UPGRADE, ...KEY, ...VERSION],
    answer: { ok: true, key: KEY[1], protocols: [] },
  },
  {
    name: "a key that is not 16 bytes, as x/net",
    lines: [...UPGRADE, "sec-websocket-key", "short", ...VERSION],
    answer: { ok: true, key: "short", protocols: [] },
  },
  { name: "no key", lines: [...UPGRADE, ...VERSION], answer: badKey },
  { name: "an empty key", lines: [...UPGRADE, ...VERSION, "Sec-WebSocket-Key", " "], answer: badKey },
  { name: "no key and no version", lines: UPGRADE, answer: badKey },
  { name: "no version", lines: [...UPGRADE, ...KEY], answer: badVersion },
  { name: "version 8", lines: [...UPGRADE, ...KEY, "Sec-WebSocket-Version", "8"], answer: badVersion },
  {
    name: "a list of versions",
    lines: [...UPGRADE, ...KEY, "Sec-WebSocket-Version", "13, 8"],
    answer: badVersion,
  },
  {
    name: "no upgrade",
    lines: ["Connection", "keep-alive", ...KEY, ...VERSION],
    answer: { ok: false, status: 400, headers: [], body: "not websocket protocol" },
  },
];

describe("checkServerHandshake", () => {
  it.each(handshakes)("$name", ({ lines, answer }) => {
    expect(checkServerHandshake({ method: "GET", rawHeaders: lines })).toEqual(answer);
  });

  it.each(["POST", "HEAD", "CONNECT", "get"])("refuses method %s before all else", (method) => {
    const answer = { ok: false, status: 405, headers: [], body: "bad method" };
    expect(checkServerHandshake({ method, rawHeaders: [...UPGRADE, ...KEY, ...VERSION] })).toEqual(answer);
    expect(checkServerHandshake({ method, rawHeaders: [] })).toEqual(answer);
  });
});

describe("subprotocols", () => {
  it("are offered by the first line only, as Kubernetes reads it", () => {
    const lines = ["Sec-WebSocket-Protocol", "a, b", "sec-websocket-protocol", "c"];
    expect(offeredSubprotocols(lines)).toEqual(["a", "b"]);
    expect(offeredSubprotocols([])).toEqual([]);
  });

  it.each([
    { offered: ["v5", "v4"], accepted: ["v4", "v5"], chosen: "v5" },
    { offered: ["v5", "v4"], accepted: ["", "v4"], chosen: "v4" },
    { offered: ["V4"], accepted: ["v4"], chosen: undefined },
    { offered: ["v5"], accepted: ["", "v4"], chosen: undefined },
    { offered: [], accepted: ["", "v4"], chosen: "" },
    { offered: [], accepted: ["v4"], chosen: undefined },
  ])("$offered for $accepted gives $chosen", ({ offered, accepted, chosen }) => {
    expect(negotiateSubprotocol(offered, accepted)).toBe(chosen);
  });
});

describe("answers", () => {
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
  const head =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";

  it("switch protocols in x/net's order", () => {
    expect(text(encodeSwitchingProtocols("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "v5.channel.k8s.io"))).toBe(
      `${head}Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n`,
    );
  });

  it.each(["", undefined])("leave out the line of no subprotocol (%s)", (subprotocol) => {
    expect(text(encodeSwitchingProtocols("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", subprotocol))).toBe(`${head}\r\n`);
  });

  it("refuse barely", () => {
    expect(text(FORBIDDEN_RESPONSE)).toBe("HTTP/1.1 403 Forbidden\r\n\r\n");
  });
});
