import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { endOf } from "../../../packages/client/src/sessions/session-end.ts";
import { defaultSpdyLimits } from "../../../protocols/spdy/index.ts";
import { defaultWebSocketLimits, WebSocketFrameDecoder } from "../../../protocols/websocket/index.ts";
import { Tunnel, type TunnelOptions } from "../../../src/sessions/carriers/tunnel.ts";
import type { SessionObserver } from "../../../src/sessions/observers/session-observer.ts";
import type { StreamingSession } from "../../../src/sessions/session.ts";
import { CarriedSession, type MemorySocket } from "../../support/carried-session.ts";

const NOTHING = new Uint8Array(0);
const NO_SPDY = Buffer.from("8009000100000001", "hex");
/** Refuses what begins with an exclamation mark: it is no SPDY. */
const REFUSING: SessionObserver = {
  isRequired: true,
  onStream: () => undefined,
  onUndecodable: () => endOf("refused", "port 22 is denied"),
};

/** One unmasked or masked frame of at most 125 bytes; the mask is zero, so that it changes nothing. */
function frame(opcode: number, payload: Uint8Array | string, isMasked: boolean): Buffer {
  const bytes = Buffer.from(payload as string);
  const head = [0x80 | opcode, bytes.byteLength | (isMasked ? 0x80 : 0), ...(isMasked ? [0, 0, 0, 0] : [])];
  return Buffer.concat([Buffer.from(head), bytes]);
}
const close = (code: number, isMasked: boolean): Buffer =>
  frame(8, Uint8Array.of(code >> 8, code & 0xff), isMasked);

/** What `socket` was sent in WebSocket frames; `role` is that of whoever reads them. */
function readFrames(socket: MemorySocket, role: "client" | "server"): { data: string; closed: number[] } {
  const read = { data: "", closed: [] as number[] };
  const decoder = new WebSocketFrameDecoder(role, {
    onMessage: (part) => {
      read.data += Buffer.from(part).toString("latin1");
    },
    onPing: () => {},
    onPong: () => {},
    onClose: (code) => void read.closed.push(code),
  });
  decoder.push(Uint8Array.from(socket.sentBytes));
  return read;
}

type Carried = CarriedSession & { readonly session: StreamingSession };

const TO_SPDY = { client: "messages", node: "spdy" } as const;
const BRIDGE = { client: "spdy", node: "messages" } as const;
const THROUGH = { client: "messages", node: "messages" } as const;

function carrying(sides: Pick<TunnelOptions, "client" | "node">, ...observers: SessionObserver[]): Carried {
  const carried = new CarriedSession({ idleMs: 5_000 }, observers);
  const { client, node } = carried;
  for (const socket of [client, node]) socket.on("error", () => {});
  const [downstream, upstream] = [
    { socket: client, head: NOTHING },
    { socket: node, head: NOTHING },
  ];
  const session = carried.carry(
    (life): StreamingSession =>
      new Tunnel(
        downstream,
        upstream,
        { ...sides, webSocketLimits: defaultWebSocketLimits, spdyLimits: defaultSpdyLimits },
        life,
      ),
  );
  return Object.assign(carried, { session });
}

describe("a tunnel", () => {
  it("takes the client's messages apart and puts the node's bytes into messages", async () => {
    const { client, node, life } = carrying(TO_SPDY);
    client.push(Buffer.concat([frame(2, "one ", true), frame(2, "two", true)]));
    node.push("three");
    await turn();
    expect(node.sentBytes.toString()).toBe("one two");
    expect(readFrames(client, "client").data).toBe("three");
    expect(life).toMatchObject({ upstreamBytes: 7, downstreamBytes: 5 });
  });

  it.each([
    ["the node's end without GOAWAY", (t: Carried) => t.node.push(null), 1011, "upstream-lost"],
    ["a broken node", (t: Carried) => t.node.destroy(new Error("reset")), 1011, "upstream-lost"],
    ["a text message", (t: Carried) => t.client.push(frame(1, "text", true)), 1003, "protocol-error"],
    ["a refused port", (t: Carried) => t.client.push(frame(2, NO_SPDY, true)), 1008, "refused"],
    ["a limit", (t: Carried) => t.clock.advance(5_000), 1001, "idle"],
    ["a shutdown", (t: Carried) => t.life.cut("shutdown", "bye"), 1001, "shutdown"],
  ])("closes for %s", async (_name, act, code, cause) => {
    const tunnel = carrying(TO_SPDY, REFUSING);
    act(tunnel);
    await expect.poll(() => tunnel.reports.map((report) => report.cause)).toEqual([cause]);
    expect(readFrames(tunnel.client, "client").closed).toEqual([code]);
    expect(tunnel.node.sentBytes.toString()).toBe("");
  });

  it("ends the node's side behind the client's Close", async () => {
    const { client, node, reports } = carrying(TO_SPDY);
    client.push(Buffer.concat([frame(2, "last", true), close(1000, true)]));
    await expect.poll(() => node.writableFinished).toBe(true);
    expect(node.sentBytes.toString()).toBe("last");
    expect(reports).toMatchObject([{ cause: "client-gone", upstreamBytes: 4 }]);
  });
});

describe("a tunnel through to a tunnel", () => {
  it("puts the bytes of each side into messages of its own", async () => {
    const { client, node, life } = carrying(THROUGH);
    client.push(Buffer.concat([frame(2, "one ", true), frame(2, "", true), frame(2, "two", true)]));
    node.push(Buffer.concat([frame(2, "three ", false), frame(2, "four", false)]));
    await turn();
    expect(readFrames(node, "server").data).toBe("one two");
    expect(readFrames(client, "client").data).toBe("three four");
    expect(life).toMatchObject({ upstreamBytes: 7, downstreamBytes: 10 });
  });

  it.each([
    ["the node's Close 1000", (t: Carried) => t.node.push(close(1000, false)), 1000, "completed"],
    ["another Close", (t: Carried) => t.node.push(close(1013, false)), 1013, "upstream-lost"],
    ["a broken node", (t: Carried) => t.node.destroy(new Error("reset")), 1011, "upstream-lost"],
    ["the node's end without Close", (t: Carried) => t.node.push(null), 1011, "upstream-lost"],
    [
      "a text message of the node",
      (t: Carried) => t.node.push(frame(1, "text", false)),
      1011,
      "protocol-error",
    ],
    ["a text message", (t: Carried) => t.client.push(frame(1, "text", true)), 1003, "protocol-error"],
    ["a refused port", (t: Carried) => t.client.push(frame(2, NO_SPDY, true)), 1008, "refused"],
    ["a limit", (t: Carried) => t.clock.advance(5_000), 1001, "idle"],
    ["a shutdown", (t: Carried) => t.life.cut("shutdown", "bye"), 1001, "shutdown"],
  ])("closes for %s", async (_name, act, code, cause) => {
    const tunnel = carrying(THROUGH, REFUSING);
    act(tunnel);
    await expect.poll(() => readFrames(tunnel.client, "client").closed).toEqual([code]);
    tunnel.client.push(Buffer.concat([close(code, true)]));
    tunnel.client.push(null);
    await expect.poll(() => tunnel.reports.map((report) => report.cause)).toEqual([cause]);
    expect(readFrames(tunnel.node, "server").data).toBe("");
  });

  it("closes the node's side behind the client's Close", async () => {
    const { client, node, reports } = carrying(THROUGH);
    client.push(Buffer.concat([frame(2, "last", true), close(1000, true)]));
    await expect.poll(() => readFrames(node, "server")).toEqual({ data: "last", closed: [1000] });
    expect(reports).toMatchObject([{ cause: "client-gone" }]);
  });
});

describe("a bridge into a tunnel", () => {
  it("puts the client's bytes into masked messages and takes the node's apart", async () => {
    const { client, node, life } = carrying(BRIDGE);
    client.push("one");
    node.push(Buffer.concat([frame(2, "two ", false), frame(2, "", false), frame(2, "three", false)]));
    await turn();
    expect(readFrames(node, "server").data).toBe("one");
    expect(client.sentBytes.toString()).toBe("two three");
    expect(life).toMatchObject({ upstreamBytes: 3, downstreamBytes: 9 });
  });

  it("ends the client's side behind Close 1000, which completes it", async () => {
    const { client, node, reports } = carrying(BRIDGE);
    node.push(Buffer.concat([frame(2, "last", false), close(1000, false)]));
    await expect.poll(() => client.writableFinished).toBe(true);
    expect(client.sentBytes.toString()).toBe("last");
    client.push(null);
    await expect.poll(() => reports.map(({ cause }) => cause)).toEqual(["completed"]);
  });

  it.each([
    ["another Close", (t: Carried) => t.node.push(close(1011, false)), "upstream-lost"],
    ["a broken node", (t: Carried) => t.node.destroy(new Error("reset")), "upstream-lost"],
    ["a text message", (t: Carried) => t.node.push(frame(1, "text", false)), "protocol-error"],
    ["a refused port", (t: Carried) => t.client.push(NO_SPDY), "refused"],
    ["a limit", (t: Carried) => t.clock.advance(5_000), "idle"],
  ])("ends the client's session by GOAWAY for %s", async (_name, act, cause) => {
    const bridge = carrying(BRIDGE, REFUSING);
    act(bridge);
    await expect.poll(() => bridge.reports.map((report) => report.cause)).toEqual([cause]);
    await expect.poll(() => bridge.client.writableFinished).toBe(true);
    expect(bridge.client.sentBytes.toString("hex")).toMatch(/^800300070000000800000000000000\d\d$/);
  });

  it("breaks the client's connection in the middle of a frame", async () => {
    const { client, node, reports } = carrying(BRIDGE);
    node.push(frame(2, "half a frame", false));
    await turn();
    node.push(close(1011, false));
    await expect.poll(() => client.destroyed).toBe(true);
    expect([client.writableEnded, client.sentBytes.toString()]).toEqual([false, "half a frame"]);
    expect(reports).toMatchObject([{ cause: "upstream-lost" }]);
  });

  it("closes the tunnel when the client ends its connection", async () => {
    const { client, node, reports } = carrying(BRIDGE);
    client.push("last");
    client.push(null);
    await expect.poll(() => readFrames(node, "server")).toEqual({ data: "last", closed: [1000] });
    expect(reports).toMatchObject([{ cause: "client-gone" }]);
  });
});
