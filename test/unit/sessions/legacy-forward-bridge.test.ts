import { describe, expect, it } from "vitest";
import { defaultSpdyLimits } from "../../../protocols/spdy/index.ts";
import { defaultWebSocketLimits, OPCODE } from "../../../protocols/websocket/index.ts";
import { LegacyForwardBridge } from "../../../src/sessions/carriers/bridge/legacy-forward-bridge.ts";
import { CarriedSession } from "../../support/carried-session.ts";
import {
  channelPeer,
  type Peer,
  type Pipe,
  settle,
  spdyPeer,
  webSocketPipe,
} from "../../support/session-peers.ts";

const HEAD = new Uint8Array(0);
const PORT = 0x1f90;
/** Each channel opens with its port, little endian. */
const PREFIX = "\x90\x1f";

/** A legacy port-forward of one port over memory, with a node that speaks the tunnel. */
class BridgedForward extends CarriedSession {
  readonly clientPipe: Pipe;
  readonly nodePipe: Pipe;
  readonly clientPeer: Peer;
  readonly nodePeer: Peer;

  constructor(isBase64 = false) {
    super({ idleMs: 600_000, streamCreationMs: 30_000 });
    for (const socket of [this.client, this.node]) socket.on("error", () => {});
    this.carry(
      (life) =>
        new LegacyForwardBridge(
          { socket: this.client, head: HEAD },
          { socket: this.node, head: HEAD },
          { ports: [PORT], isBase64, webSocketLimits: defaultWebSocketLimits, spdyLimits: defaultSpdyLimits },
          life,
        ),
    );
    this.clientPipe = webSocketPipe(this.client, "client", isBase64 ? OPCODE.TEXT : OPCODE.BINARY);
    this.nodePipe = webSocketPipe(this.node, "server");
    this.clientPeer = channelPeer(this.clientPipe, { isBase64, isForward: true });
    this.nodePeer = spdyPeer(this.nodePipe, "server");
  }

  settle(): Promise<void> {
    return settle(this.clientPeer, this.nodePeer);
  }
}

describe.each([false, true])("a bridge of legacy port-forward into a tunnel, base64: %s", (isBase64) => {
  it("opens the connection at once, names the port on both channels, and carries both ways", async () => {
    const bridge = new BridgedForward(isBase64);
    await bridge.settle();
    expect(bridge.clientPeer.received).toEqual({ data: PREFIX, error: PREFIX });
    bridge.clientPeer.send("data", "ping");
    bridge.nodePeer.send("data", "pong");
    await bridge.settle();
    expect(bridge.nodePeer.received).toMatchObject({ data: "ping" });
    expect(bridge.clientPeer.received).toEqual({ data: `${PREFIX}pong`, error: PREFIX });
    expect(bridge.life).toMatchObject({ upstreamBytes: 4, downstreamBytes: 4 });
  });

  it("passes the node's error on, and ends with Close 1000 when the node has ended both streams", async () => {
    const bridge = new BridgedForward(isBase64);
    await bridge.settle();
    bridge.nodePeer.send("error", "connection refused");
    for (const stream of ["data", "error"]) bridge.nodePeer.finish(stream);
    await bridge.settle();
    expect(bridge.clientPeer.received.error).toBe(`${PREFIX}connection refused`);
    expect([bridge.clientPipe.closes, bridge.nodePipe.closes]).toEqual([[1000], [1000]]);
    bridge.client.push(null);
    await expect.poll(() => bridge.causes).toEqual(["completed"]);
  });
});

describe("a bridge of legacy port-forward into a tunnel", () => {
  it("reads nothing from error channels, nor from channels of no port", async () => {
    const bridge = new BridgedForward();
    await bridge.settle();
    bridge.clientPeer.send("error", "ignored");
    bridge.clientPipe.send(Buffer.from("\x08ignored"));
    await bridge.settle();
    expect(bridge.nodePeer.received).toEqual({ error: "" });
    expect(bridge.life.upstreamBytes).toBe(0);
  });

  it.each([
    [
      "a node's broken connection",
      (b: BridgedForward) => b.node.destroy(new Error("reset")),
      1011,
      "upstream-lost",
    ],
    ["a node's Close", (b: BridgedForward) => b.nodePipe.close(), 1011, "upstream-lost"],
    ["a node's GOAWAY", (b: BridgedForward) => b.nodePeer.leave(), 1011, "upstream-lost"],
    ["a node's garbage", (b: BridgedForward) => b.node.push("HTTP/1.1 500 x"), 1011, "protocol-error"],
    ["its limit", (b: BridgedForward) => [1, 600_000].map((ms) => b.clock.advance(ms)), 1001, "idle"],
    ["a shutdown", (b: BridgedForward) => b.life.cut("shutdown", "bye"), 1001, "shutdown"],
  ])("reports %s on the error channel, and never Close 1000", async (_what, act, code, cause) => {
    const bridge = new BridgedForward();
    await bridge.settle();
    bridge.nodePeer.send("data", "pong");
    await bridge.settle();
    act(bridge);
    await bridge.settle();
    expect(bridge.clientPeer.received.error).toContain(`error forwarding port ${PORT}: `);
    expect(bridge.clientPipe.closes).toEqual([code]);
    expect(bridge.causes).toEqual([cause]);
  });

  it("delivers what the client sent before it left", async () => {
    const bridge = new BridgedForward();
    await bridge.settle();
    bridge.clientPeer.send("data", "last");
    bridge.clientPeer.leave();
    await bridge.settle();
    expect(bridge.nodePeer.received.data).toBe("last");
    expect(bridge.nodePeer.ended).toContain("data");
    expect(bridge.causes).toEqual(["client-gone"]);
  });

  it("gives up a node that does not accept the streams", async () => {
    const bridge = new BridgedForward();
    bridge.clock.advance(30_000);
    await settle(bridge.clientPeer);
    expect(bridge.clientPeer.received.error).toContain("the node did not accept the streams in time");
    expect(bridge.clientPipe.closes).toEqual([1000]);
  });
});
