import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../../packages/client/src/net/self-signed.ts";
import { connectHttp2 } from "../../../support/http2-client.ts";
import {
  type SeededSession,
  spdySession,
  streamSession,
  tunnelSession,
  webSocketSession,
} from "../../../support/seeded-sessions.ts";
import { pathTakenBy } from "../../../support/taken-path.ts";
import { startTestGateway, type TestGateway } from "../../../support/test-gateway.ts";

/**
 * Memory that one session reads into is used again by others, and with TLS also across sessions: each must get its own bytes, however slow
 * its client is. Here clients send bytes of their own to commands that echo them.
 */

const PODS = { "web-spdy": "node-spdy", "web-ws": "node-ws", "web-hop": "node-hop" } as const;
type PodName = keyof typeof PODS;

/** TLS writes always wait for their turn; without it only what is more than the kernel's buffers of a client's leg hold. */
const BYTES = { https: 3_000_000, http: 8_000_000 };
const HELD = 3;
const OTHERS = 2;

type Protocol = "v5" | "v5 on HTTP/2" | "v4" | "v4.base64" | "SPDY" | "tunnel";

const paths: readonly (readonly [Protocol, PodName, way: string])[] = [
  ["v5", "web-spdy", "WebSocket translate"],
  ["v5 on HTTP/2", "web-spdy", "WebSocket translate"],
  ["v5", "web-ws", "WebSocket pass-through"],
  ["v5 on HTTP/2", "web-ws", "WebSocket pass-through"],
  ["SPDY", "web-spdy", "SPDY pass-through"],
  ["SPDY", "web-hop", "SPDY bridge"],
  ["v4", "web-hop", "WebSocket bridge"],
  ["v4.base64", "web-hop", "WebSocket bridge"],
  ["tunnel", "web-spdy", "WebSocket tunnel"],
];

describe.each(["https", "http"] as const)("sessions over %s on both legs", (scheme) => {
  let gateway: TestGateway;

  beforeAll(async () => {
    const tls = scheme === "https" ? await createSelfSignedCertificate() : undefined;
    gateway = await startTestGateway({
      scheme,
      fakeNodes: Object.entries(PODS).map(([pod, name]) => ({
        name,
        pod,
        declaresWebSockets: pod !== "web-spdy",
        tls,
      })),
      kubelet: { streaming: { nodes: { "node-hop": "websocket-only" } } },
    });
  });
  afterAll(() => gateway?.stop());

  // HTTP/2 is what TLS agrees on.
  const ofScheme = paths.filter(([protocol]) => scheme === "https" || protocol !== "v5 on HTTP/2");

  it.each(
    ofScheme,
  )("of clients that speak %s to %s (%s) bring each its own bytes", async (protocol, pod, way) => {
    const server = { url: gateway.apiServerUrl, token: gateway.token };
    const connection =
      protocol === "v5 on HTTP/2" ? await connectHttp2(server.url, { maxSessionMemory: 1_000 }) : undefined;
    const bytes = BYTES[scheme];
    const open = (body: number): Promise<SeededSession> => {
      if (connection !== undefined) return streamSession(connection, server, pod, body, bytes);
      if (protocol === "SPDY") return spdySession(server, pod, body, bytes);
      if (protocol === "tunnel") return tunnelSession(server, pod, body, bytes);
      return webSocketSession(server, pod, body, bytes, `${protocol}.channel.k8s.io`);
    };
    try {
      const { ways } = await pathTakenBy(gateway.readMetrics, async () => {
        const held: SeededSession[] = [];
        for (let body = 0; body < HELD; body++) {
          const session = await open(body);
          session.pause();
          held.push(session);
        }
        // These use the memory that the first have freed, and no other.
        for (let body = HELD; body < HELD + OTHERS; body++)
          expect(await (await open(body)).result).toBe("ok");
        for (const session of held) session.resume();
        expect(await Promise.all(held.map(({ result }) => result))).toEqual(held.map(() => "ok"));
      });
      expect(ways).toEqual([way]);
    } finally {
      connection?.destroy();
    }
  });
});
