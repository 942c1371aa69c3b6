import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it } from "vitest";
import {
  type GatewayHarness,
  type HarnessOptions,
  startGatewayHarness,
} from "../../../support/gateway-harness.ts";
import { afterHead, listenRaw, type RawUpstream } from "../../../support/http/loopback.ts";
import { type KubeletScript, ScriptedKubelet } from "../../../support/scripted-kubelet.ts";
import { TUNNEL_PROTOCOL, TunnelClient } from "../../../support/tunnel-client.ts";

const SWITCHED =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: portforward.k8s.io\r\n\r\n";
const TUNNEL_METRIC = "apiserver_stream_tunnel_requests_total{";

let harness: GatewayHarness | undefined;
let node: { close(): Promise<void> } | undefined;

afterEach(async () => {
  await harness?.close();
  await node?.close();
  harness = node = undefined;
});

async function startKubelet(script: KubeletScript): Promise<{ authority: string; kubelet: ScriptedKubelet }> {
  const kubelet = new ScriptedKubelet(script);
  node = kubelet;
  harness = await startGatewayHarness({ kubeletPort: await kubelet.listen() });
  return { authority: harness.authority, kubelet };
}

/** A node that switches and then sends every byte back. */
async function startEchoNode(
  options: Partial<HarnessOptions> = {},
): Promise<{ authority: string; raw: RawUpstream }> {
  const raw = await listenRaw((socket) => {
    afterHead(socket, () => {
      socket.write(SWITCHED);
      socket.on("data", (chunk) => socket.write(chunk));
    });
  });
  node = raw;
  harness = await startGatewayHarness({ kubeletPort: raw.port, ...options });
  return { authority: harness.authority, raw };
}

/** Echoes data streams; a stream that the client finishes is finished in return. */
const echoStreams: KubeletScript = {
  onData: (name, part, fin, { streams }) => {
    if (!name.startsWith("data")) return;
    if (part.byteLength > 0) streams.get(name)?.write(Uint8Array.from(part));
    if (fin) streams.get(name)?.finish();
  },
};

const metrics = (): Promise<string[]> | undefined => harness?.metric(TUNNEL_METRIC);

describe("tunnel", () => {
  it("TestTunnelingHandler_UpgradeStreamingAndTunneling: 1 MiB of random data comes back whole; metric 101", async () => {
    const { authority, kubelet } = await startKubelet(echoStreams);
    const client = await TunnelClient.open(authority, { speaksSpdy: true });
    expect(client.protocol).toBe(TUNNEL_PROTOCOL);
    const data = randomBytes(1024 * 1024);
    client.openStream("error", 0).stream.finish();
    const { stream, text, ended } = client.openStream("data", 0);
    for (let offset = 0; offset < data.length; offset += 32_768) {
      stream.write(data.subarray(offset, offset + 32_768));
    }
    stream.finish();
    expect(await ended).toBe("finished");
    expect(text().equals(data)).toBe(true);
    expect(await metrics()).toEqual([`${TUNNEL_METRIC}code="101"} 1`]);

    const [request] = kubelet.requests;
    expect([request?.method, request?.url]).toEqual(["POST", "/portForward/default/web"]);
    expect(request?.headersDistinct["x-stream-protocol-version"]).toEqual(["portforward.k8s.io"]);
    expect(request?.headers["sec-websocket-key"]).toBeUndefined();
    client.socket.close(1000);
    expect((await client.closed).code).toBe(1000);
    await expect.poll(() => harness?.context.sessions.size).toBe(0);
  });

  it("TestTunnelingConnection_ReadWriteClose: many streams in both directions at once", async () => {
    const { authority } = await startKubelet(echoStreams);
    const client = await TunnelClient.open(authority, { speaksSpdy: true });
    const results = Array.from({ length: 20 }, async (_, id) => {
      const payload = randomBytes(10_000 + id);
      client.openStream("error", id).stream.finish();
      const { stream, text, ended } = client.openStream("data", id);
      stream.write(payload);
      stream.finish();
      await ended;
      return text().equals(payload);
    });
    expect((await Promise.all(results)).every(Boolean)).toBe(true);
    client.socket.close();
  });

  for (const [name, offered, echoed] of [
    ["the KEP's name is echoed as offered", ["v2.portforward.k8s.io"], "v2.portforward.k8s.io"],
    ["both names: the client's first", ["v2.portforward.k8s.io", TUNNEL_PROTOCOL], "v2.portforward.k8s.io"],
    ["a name nobody knows before it", ["UNKNOWN", TUNNEL_PROTOCOL], TUNNEL_PROTOCOL],
  ] as const) {
    it(name, async () => {
      const { authority } = await startEchoNode();
      const client = await TunnelClient.open(authority, { protocols: offered });
      expect(client.protocol).toBe(echoed);
      client.socket.close();
    });
  }

  it("TestTunnelingHandler_BadHandshakeError: an unknown subprotocol is the node's to judge, and its refusal stands", async () => {
    const { authority, kubelet } = await startKubelet({
      refuse: () => "HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nno!",
    });
    const refusal = await TunnelClient.refused(authority, { protocols: ["UNKNOWN"] });
    expect(refusal).toMatchObject({ status: 400, body: "no!" });
    expect(kubelet.requests[0]?.headers["sec-websocket-protocol"]).toBe("UNKNOWN");
    // It never was a tunnel, so the tunnel's counter says nothing (kube-apiserver's dispatch does the same).
    expect(await metrics()).toEqual([`${TUNNEL_METRIC}code="101"} 0`]);
  });

  it("TestTunnelingHandler_BadRequestWithoutProtcols: no subprotocol at all is the legacy form, the node's too", async () => {
    const { authority } = await startKubelet({
      refuse: () => "HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nno!",
    });
    expect(await TunnelClient.refused(authority, { protocols: [] })).toMatchObject({
      status: 400,
      body: "no!",
    });
  });
});

describe("tunnel bytes", () => {
  const data = randomBytes(257);

  it("split at every byte, tiny messages, empty messages and one large message are one stream", async () => {
    const { authority } = await startEchoNode();
    const client = await TunnelClient.open(authority);
    const sent: Buffer[] = [];
    const send = (part: Buffer): void => {
      sent.push(part);
      client.socket.send(part);
    };
    for (let at = 0; at <= data.length; at++) {
      send(data.subarray(0, at));
      send(data.subarray(at));
    }
    for (const byte of data) send(Buffer.of(byte));
    send(randomBytes(300_000));
    // One message in fragments, as gorilla writes what exceeds its buffer.
    client.socket.send(data, { fin: false });
    client.socket.send(Buffer.alloc(0), { fin: false });
    client.socket.send(data, { fin: true });
    const expected = Buffer.concat([...sent, data, data]);
    await expect.poll(() => client.bytes().length).toBe(expected.length);
    expect(client.bytes().equals(expected)).toBe(true);
    expect(client.messages.every((message) => message.length > 0)).toBe(true);
    client.socket.close();
  });

  it("what the node sends right behind its 101, or in tiny writes, arrives in order", async () => {
    const raw = await listenRaw((socket) => {
      afterHead(socket, () => {
        socket.write(Buffer.concat([Buffer.from(SWITCHED), data]));
        for (const byte of data) socket.write(Buffer.of(byte));
        socket.end();
      });
    });
    node = raw;
    harness = await startGatewayHarness({ kubeletPort: raw.port });
    const client = await TunnelClient.open(harness.authority);
    await client.closed;
    expect(client.bytes().equals(Buffer.concat([data, data]))).toBe(true);
  });

  it("a text message ends the tunnel, and not as if all were well", async () => {
    const { authority, raw } = await startEchoNode();
    const client = await TunnelClient.open(authority);
    client.socket.send("text");
    const { code, reason } = await client.closed;
    expect([code, reason]).toEqual([1003, "the client sent a text message into a tunnel"]);
    await expect.poll(() => raw.sockets.every((socket) => socket.readableEnded)).toBe(true);
    expect(raw.received()).not.toContain("text");
  });
});

describe("how a tunnel ends", () => {
  it("1011 when the node ends its connection without GOAWAY, after everything it sent", async () => {
    const { authority, raw } = await startEchoNode();
    const client = await TunnelClient.open(authority);
    raw.sockets[0]?.end(Buffer.alloc(500_000, "x"));
    const reason = "the node ended the connection without GOAWAY";
    expect(await client.closed).toEqual({ code: 1011, reason });
    expect(client.bytes().length).toBe(500_000);
    expect(harness?.context.sessions.size).toBe(0);
  });

  it("1011 when the node's connection breaks", async () => {
    const { authority, raw } = await startEchoNode();
    const client = await TunnelClient.open(authority);
    raw.sockets[0]?.resetAndDestroy();
    expect((await client.closed).code).toBe(1011);
    await expect.poll(() => harness?.context.sessions.size).toBe(0);
  });

  it("1001 at shutdown", async () => {
    const { authority } = await startEchoNode();
    const client = await TunnelClient.open(authority);
    await expect.poll(() => harness?.context.sessions.list().length).toBe(1);
    void harness?.context.sessions.endAll("the gateway is shutting down");
    expect(await client.closed).toEqual({ code: 1001, reason: "the gateway is shutting down" });
  });

  it("a client that closes gets its code back, and the node sees the end", async () => {
    const { authority, raw } = await startEchoNode();
    const client = await TunnelClient.open(authority);
    client.socket.close(4001);
    expect((await client.closed).code).toBe(4001);
    await expect.poll(() => raw.sockets[0]?.readableEnded).toBe(true);
  });

  it("a client that vanishes leaves no session, and the node sees the end", async () => {
    const { authority, raw } = await startEchoNode();
    const client = await TunnelClient.open(authority);
    client.socket.terminate();
    await expect.poll(() => raw.sockets[0]?.readableEnded).toBe(true);
    await expect.poll(() => harness?.context.sessions.size).toBe(0);
  });
});
