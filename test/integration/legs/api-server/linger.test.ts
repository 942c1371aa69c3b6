import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { SessionClock } from "../../../../packages/client/src/net/session-clock.ts";
import type { Timeouts } from "../../../../src/config/sections/timeouts.ts";
import { defaultTimeouts } from "../../../support/default-configuration.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { openClient } from "../../../support/http/loopback.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { startRawNode } from "../../../support/raw-node.ts";
import { endExec, ScriptedKubelet, SUCCESS } from "../../../support/scripted-kubelet.ts";

const HANDSHAKE = [
  "GET /api/v1/namespaces/default/pods/web/exec?stdout=true HTTP/1.1",
  "Host: gateway",
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  "Sec-WebSocket-Protocol: v5.channel.k8s.io",
].join("\r\n");
/** An empty PING, masked with zeros. */
const PING = Buffer.from([0x89, 0x80, 0, 0, 0, 0]);

let harness: GatewayHarness | undefined;
let kubelet: ScriptedKubelet | undefined;
let client: Socket | undefined;

afterEach(async () => {
  client?.destroy();
  await kubelet?.close();
  await harness?.close();
  harness = kubelet = client = undefined;
});

/** A client that got its status and Close, and goes on as if it had not. The session itself is over. */
async function startDeafClient(clock: SessionClock, timeouts: Partial<Timeouts>): Promise<Socket> {
  kubelet = new ScriptedKubelet({
    onStream: (name, _stream, session) => name === "stdout" && endExec(session, SUCCESS),
  });
  harness = await startGatewayHarness({ kubeletPort: await kubelet.listen(), clock, timeouts });
  const socket = await openClient(Number(harness.authority.split(":")[1]));
  client = socket;
  let received = "";
  let hasEnded = false;
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
  });
  socket.on("end", () => {
    hasEnded = true;
  });
  socket.write(`${HANDSHAKE}\r\n\r\n`);
  await expect.poll(() => hasEnded).toBe(true);
  expect(received).toContain(SUCCESS);
  expect(received.endsWith("\x88\x02\x03\xe8")).toBe(true);
  expect(harness.context.sessions.size).toBe(0);
  return socket;
}

describe("a client that never closes after its session's end", () => {
  const times = { lingerIdleMs: 200, lingerMaxMs: 600 };

  it("is let go after lingerIdle when it is silent", async () => {
    const clock = new ManualClock();
    const socket = await startDeafClient(clock, {});
    // The node has closed; only the client is waited for.
    await expect.poll(() => clock.listenerCount).toBe(1);
    // The client has taken everything; from here on nothing is heard of it.
    clock.advance(0);
    clock.advance(defaultTimeouts.lingerIdleMs - 1);
    expect(clock.listenerCount).toBe(1);
    clock.advance(1);
    await expect.poll(() => clock.listenerCount).toBe(0);
    await expect.poll(() => socket.destroyed || void socket.write(PING)).toBe(true);
  });

  it("is let go after lingerMax when it keeps sending", async () => {
    const socket = await startDeafClient(new SessionClock(10), times);
    const startMs = performance.now();
    // A write that meets a closed connection fails and closes the socket.
    const sending = setInterval(() => socket.write(PING), 5);
    await new Promise((resolve) => socket.once("close", resolve));
    clearInterval(sending);
    const lastedMs = performance.now() - startMs;
    expect(lastedMs).toBeGreaterThan(times.lingerIdleMs * 2);
    expect(lastedMs).toBeLessThan(times.lingerMaxMs * 5);
  });
});

describe("a client that has ended its side of a session that passes through", () => {
  const REQUEST = [
    "POST /api/v1/namespaces/default/pods/web/portforward HTTP/1.1",
    "Host: gateway",
    "Connection: Upgrade",
    "Upgrade: SPDY/3.1",
    "X-Stream-Protocol-Version: portforward.k8s.io",
    "Content-Length: 0",
  ].join("\r\n");
  const { lingerIdleMs } = defaultTimeouts;

  it("gets what the node still sends; a node that says nothing for lingerIdle is let go", async () => {
    const clock = new ManualClock();
    const node = await startRawNode({ protocol: "portforward.k8s.io" });
    harness = await startGatewayHarness({ kubeletPort: node.port, clock });
    const socket = await openClient(Number(harness.authority.split(":")[1]));
    client = socket;
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    socket.write(`${REQUEST}\r\n\r\n`);
    await expect.poll(() => harness?.context.sessions.list().length).toBe(1);
    socket.end();
    await expect.poll(() => node.sockets[0]?.readableEnded).toBe(true);
    for (const word of ["still", "alive"]) {
      clock.advance(lingerIdleMs - 1);
      node.sockets[0]?.write(word);
      await expect.poll(() => received.endsWith(word)).toBe(true);
      clock.advance(1);
      expect(harness.context.sessions.size).toBe(1);
    }
    clock.advance(lingerIdleMs);
    expect(harness.context.sessions.size).toBe(0);
    clock.advance(lingerIdleMs);
    await expect.poll(() => clock.listenerCount).toBe(0);
    await node.close();
  });
});
