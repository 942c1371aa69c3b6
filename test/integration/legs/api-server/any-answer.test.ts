import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AnsweredClient, http1Client, http2Client } from "../../../support/answered.ts";
import { connectHttp2, openWebSocket } from "../../../support/http2-client.ts";
import { type ScriptedApiLeg, startScriptedApiLeg } from "../../../support/scripted-api-leg.ts";
import type { ScriptedBackend } from "../../../support/scripted-backend.ts";
import { V5Client } from "../../../support/v5-client.ts";

let leg: ScriptedApiLeg;
let peer: ScriptedBackend;
let authorities: ScriptedApiLeg["authorities"];
let clients: Record<"h1" | "h2", AnsweredClient>;

beforeAll(async () => {
  leg = await startScriptedApiLeg();
  ({ peer, authorities } = leg);
  clients = {
    h1: http1Client(Number(authorities.h1.split(":")[1])),
    h2: http2Client(`https://${authorities.h2}`),
  };
});
afterAll(async () => {
  clients.h2.close();
  await leg.close();
});

describe.each(["h1", "h2"] as const)("an answer of the API server to an %s client", (client) => {
  it.each([
    ["Content-Type twice", 200, 200],
    ["status 999", 999, 502],
  ])("ends that exchange at most: %s", async (_what, given, status) => {
    const twice = [
      ["Content-Type", "a/b"],
      ["Content-Type", "c/d"],
    ] as const;
    peer.answer = { status: given, lines: twice, body: "x" };
    expect(await clients[client].get("gateway", "/version")).toMatchObject({ status, isWhole: true });
    peer.answer = { status: 200, lines: [], body: "another" };
    expect(await clients[client].get("gateway", "/version")).toMatchObject({ status: 200, body: "another" });
  });
});

const STATUS = {
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Failure",
  message: "no such thing",
};
const DEEP_METADATA = `{"a":${"[".repeat(3_000)}${"]".repeat(3_000)}}`;

const REFUSALS: readonly (readonly [what: string, status: number, body: string, seen: number])[] = [
  ["status 999", 999, "no", 500],
  ["a Status whose code is 99999", 404, JSON.stringify({ ...STATUS, code: 99_999 }), 404],
  ["a Status whose code is no integer", 404, JSON.stringify({ ...STATUS, code: 404.5 }), 404],
  [
    "a Status that wants to be left alone for -1.5 seconds",
    429,
    JSON.stringify({ ...STATUS, code: 429, details: { retryAfterSeconds: -1.5 } }),
    429,
  ],
  [
    "a Status that is nested deeply",
    404,
    JSON.stringify({ ...STATUS, code: 404 }).replace('"metadata":{}', `"metadata":${DEEP_METADATA}`),
    404,
  ],
];

describe("a node's refusal", () => {
  it.each(REFUSALS)("is an answer to a WebSocket over HTTP/1.1: %s", async (_what, status, body, seen) => {
    peer.answer = { status, lines: [], body };
    const { upgradeStatus } = await refusedOverHttp1();
    expect(upgradeStatus).toBe(seen);
  });

  it.each(REFUSALS)("is an answer to a WebSocket over HTTP/2: %s", async (_what, status, body, seen) => {
    peer.answer = {
      status,
      lines: [
        ["ETag", "1"],
        ["ETag", "2"],
        ["HTTP2-Settings", "A"],
      ],
      body,
    };
    const session = await connectHttp2(`https://${authorities.h2}`);
    const path = "/api/v1/namespaces/default/pods/web/exec?stdout=true&command=x";
    const answer = await openWebSocket(session, path, { "sec-websocket-protocol": "v5.channel.k8s.io" });
    expect(answer).toMatchObject({ status: seen });
    expect(await clients.h2.get("gateway", "/version")).toMatchObject({ isWhole: true });
    session.destroy();
  });
});

async function refusedOverHttp1(): Promise<{ upgradeStatus: number | undefined }> {
  const client = new V5Client(authorities.h1, "command=x&stdout=true");
  const upgradeStatus = await new Promise<number | undefined>((resolve) => {
    client.socket.on("unexpected-response", (_request, { statusCode }) => resolve(statusCode));
    client.socket.on("error", () => {});
  });
  client.socket.terminate();
  return { upgradeStatus };
}
