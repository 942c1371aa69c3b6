import { describe, expect, it } from "vitest";
import { checkClientHandshake, upgradeFailureText } from "../../../../protocols/websocket/index.ts";

const ACCEPT = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const PROTOCOLS = ["v5.channel.k8s.io"];
const good = {
  Upgrade: "websocket",
  Connection: "Upgrade",
  "Sec-WebSocket-Accept": ACCEPT,
  "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
};
const mismatch = "websocket: bad handshake (101 Switching Protocols)";

const rows = [
  { name: "good", headers: {}, answer: { ok: true, subprotocol: "v5.channel.k8s.io" } },
  {
    name: "tokens in lists and any case",
    headers: { Upgrade: "x, WebSocket", Connection: "keep-alive, UPGRADE" },
    answer: { ok: true, subprotocol: "v5.channel.k8s.io" },
  },
  {
    name: "no Upgrade",
    headers: { Upgrade: "" },
    answer: { ok: false, reason: "upgrade", message: mismatch },
  },
  {
    name: "an Upgrade that only contains it",
    headers: { Upgrade: "websocket2" },
    answer: { ok: false, reason: "upgrade", message: mismatch },
  },
  {
    name: "a Connection that only contains it",
    headers: { Connection: "upgraded" },
    answer: { ok: false, reason: "connection", message: mismatch },
  },
  {
    name: "another accept value",
    headers: { "Sec-WebSocket-Accept": ACCEPT.toLowerCase() },
    answer: { ok: false, reason: "accept", message: mismatch },
  },
  {
    name: "an extension",
    headers: {
      "Sec-WebSocket-Extensions":
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover",
    },
    answer: { ok: false, reason: "extension", message: "websocket: invalid compression negotiation" },
  },
  {
    name: "another subprotocol",
    headers: { "Sec-WebSocket-Protocol": "v4.channel.k8s.io" },
    answer: {
      ok: false,
      reason: "subprotocol",
      message: 'invalid protocol, expected one of ["v5.channel.k8s.io"], got "v4.channel.k8s.io"',
    },
  },
  {
    name: "no subprotocol",
    headers: { "Sec-WebSocket-Protocol": "" },
    answer: {
      ok: false,
      reason: "subprotocol",
      message: 'invalid protocol, expected one of ["v5.channel.k8s.io"], got ""',
    },
  },
];

describe("checkClientHandshake", () => {
  it.each(rows)("$name", ({ headers, answer }) => {
    const rawHeaders = Object.entries({ ...good, ...headers }).flat();
    const response = { status: 101, statusText: "Switching Protocols", rawHeaders };
    expect(checkClientHandshake(response, { accept: ACCEPT, protocols: PROTOCOLS })).toEqual(answer);
  });

  it.each([
    [200, "OK"],
    [302, "Found"],
    [403, "Forbidden"],
    [503, ""],
  ])("refuses %s %s, whatever its headers say", (status, statusText) => {
    const response = { status, statusText, rawHeaders: Object.entries(good).flat() };
    expect(checkClientHandshake(response, { accept: ACCEPT, protocols: PROTOCOLS })).toEqual({
      ok: false,
      reason: "status",
      message: `websocket: bad handshake (${status} ${statusText})`,
    });
  });

  it("names every offered subprotocol, quoted as Go does", () => {
    const rawHeaders = Object.entries({ ...good, "Sec-WebSocket-Protocol": 'a"\\b' }).flat();
    const response = { status: 101, statusText: "", rawHeaders };
    expect(checkClientHandshake(response, { accept: ACCEPT, protocols: ["a", "b"] })).toMatchObject({
      message: 'invalid protocol, expected one of ["a" "b"], got "a\\"\\\\b"',
    });
  });

  it("takes an empty subprotocol line for none, when none was offered (x/net sends one)", () => {
    for (const line of [["Sec-WebSocket-Protocol", ""], []]) {
      const { "Sec-WebSocket-Protocol": _, ...rest } = good;
      const response = { status: 101, statusText: "", rawHeaders: [...Object.entries(rest).flat(), ...line] };
      expect(checkClientHandshake(response, { accept: ACCEPT, protocols: [] })).toEqual({
        ok: true,
        subprotocol: "",
      });
    }
  });

  it("has client-go's words for what a user sees", () => {
    const cause = "websocket: bad handshake (403 Forbidden)";
    expect(upgradeFailureText(cause, "no")).toBe(`unable to upgrade streaming request: ${cause}: no`);
    expect(upgradeFailureText('pods "a" not found')).toBe(
      'unable to upgrade streaming request: pods "a" not found',
    );
  });
});
