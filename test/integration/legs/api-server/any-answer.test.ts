import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HttpUpstream } from "../../../../src/http/http-upstream.ts";
import { createApiServer } from "../../../../src/legs/api-server/api-server.ts";
import { forwardToApiServer } from "../../../../src/legs/api-server/forward-to-api-server.ts";
import type { Listener } from "../../../../src/listeners/listener.ts";
import { type AnsweredClient, http1Client, http2Client } from "../../../support/answered.ts";
import { selfSignedPair } from "../../../support/gateway-files.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { closeServer } from "../../../support/http/loopback.ts";
import { connectHttp2, openWebSocket } from "../../../support/http2-client.ts";
import { type ScriptedBackend, startScriptedBackend } from "../../../support/scripted-backend.ts";
import { V5Client } from "../../../support/v5-client.ts";

/** The API server behind the gateway, and the node of its pod, are one scripted server. */
let peer: ScriptedBackend;
let harness: GatewayHarness;
let upstream: HttpUpstream;
let listeners: Listener[];
let authorities: Record<"h1" | "h2", string>;
let clients: Record<"h1" | "h2", AnsweredClient>;

beforeAll(async () => {
  peer = await startScriptedBackend("http/1.1");
  harness = await startGatewayHarness({ kubeletPort: peer.port });
  upstream = new HttpUpstream({ endpoint: { host: "127.0.0.1", port: peer.port } });
  const api = forwardToApiServer(harness.context, { upstream, impersonates: false });
  const plain = createApiServer(harness.context, api, {});
  const tls = await selfSignedPair("gateway");
  const secure = createApiServer(harness.context, api, {
    tls: { ...tls, clientAuthorities: [] },
    http2: true,
  });
  listeners = [plain, secure];
  for (const { server } of listeners)
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const [h1, h2] = listeners.map(({ server }) => `127.0.0.1:${(server.address() as AddressInfo).port}`) as [
    string,
    string,
  ];
  authorities = { h1, h2 };
  clients = { h1: http1Client(Number(h1.split(":")[1])), h2: http2Client(`https://${h2}`) };
});
afterAll(async () => {
  clients.h2.close();
  upstream.close();
  await peer.stop();
  for (const { server } of listeners) {
    server.closeAllConnections();
    await closeServer(server, []);
  }
  await harness.close();
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
