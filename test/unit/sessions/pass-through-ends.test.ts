import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { endOf } from "../../../packages/client/src/sessions/session-end.ts";
import { defaultSpdyLimits } from "../../../protocols/spdy/index.ts";
import { encodeClose, OPCODE, WebSocketFrameDecoder } from "../../../protocols/websocket/index.ts";
import { BOUNDARY_WAIT_MS, Relay } from "../../../src/sessions/carriers/relay.ts";
import type { SessionObserver } from "../../../src/sessions/observers/session-observer.ts";
import { passThroughOf } from "../../../src/sessions/relayed-session.ts";
import type { StreamingRequest } from "../../../src/sessions/streaming-request.ts";
import { CarriedSession, type MemorySocket } from "../../support/carried-session.ts";
import { webSocketPipe } from "../../support/session-peers.ts";

const NOTHING = new Uint8Array(0);
const BYE = "the gateway is shutting down";
const STATUS = '{"metadata":{},"status":"Success"}';
const MASK_KEY = 0x1ad34c7f;

function relayed(
  subresource: "exec" | "portforward",
  protocol: string,
  observers: readonly SessionObserver[] = [],
) {
  const offer = { transport: "websocket" } as StreamingRequest["offer"];
  const { ends, decoderFor } = passThroughOf(
    { offer, subresource, ports: [8080] },
    [["Sec-WebSocket-Protocol", protocol]],
    { spdy: defaultSpdyLimits },
  );
  const carried = new CarriedSession({}, [ends, ...observers]);
  const { client, node } = carried;
  for (const socket of [client, node]) socket.on("error", () => {});
  const [downstream, upstream] = [client, node].map((socket) => ({ socket, head: NOTHING }));
  carried.carry(
    (life) =>
      new Relay(downstream as never, upstream as never, life, { decoder: decoderFor(life.observers), ends }),
  );
  return carried;
}

/** What the client reads: its messages, and how it is closed; undefined: 1006. */
function readBy(client: MemorySocket) {
  const messages: string[] = [];
  let close: string | undefined;
  let message = "";
  const decoder = new WebSocketFrameDecoder("client", {
    onMessage: (part, _isFirst, isLast) => {
      message += Buffer.from(part).toString("latin1");
      if (isLast) messages.push(message);
      if (isLast) message = "";
    },
    onPing: () => {},
    onPong: () => {},
    onClose: (code, reason) => {
      close = `${code} ${reason}`.trim();
    },
  });
  decoder.push(Uint8Array.from(client.sentBytes));
  return { messages, close };
}

const frame = (payload: string, { opcode = OPCODE.BINARY as number, isLast = true } = {}): Buffer =>
  Buffer.concat([Buffer.of((isLast ? 0x80 : 0) | opcode, payload.length), Buffer.from(payload, "latin1")]);

const failure = (message: string): string =>
  JSON.stringify({
    metadata: {},
    status: "Failure",
    message: `Internal error occurred: ${message}`,
    reason: "InternalError",
    details: { causes: [{ message }] },
    code: 500,
  });

const COMMANDS = [
  ["v5", "v5.channel.k8s.io", `\u0003${failure(BYE)}`],
  ["v4", "v4.channel.k8s.io", `\u0003${failure(BYE)}`],
  ["base64", "v4.base64.channel.k8s.io", `3${Buffer.from(failure(BYE)).toString("base64")}`],
] as const;

describe.each(COMMANDS)("a %s command that passes through and is ended here", (_name, protocol, status) => {
  it("has a Status and Close 1000 behind its output", async () => {
    const session = relayed("exec", protocol);
    const { client, node, life } = session;
    node.push(frame("1out"));
    await turn();
    life.cut("shutdown", BYE);
    expect(readBy(client)).toEqual({ messages: ["1out", status], close: "1000" });
    expect(session.causes).toEqual(["shutdown"]);
  });

  it("has the rest of the node's frame first, and none of the next", async () => {
    const { client, node, life } = relayed("exec", protocol);
    node.push(frame("1output").subarray(0, 4));
    await turn();
    life.cut("shutdown", BYE);
    expect(readBy(client)).toEqual({ messages: [], close: undefined });
    node.push(Buffer.concat([frame("1output").subarray(4), frame("1more")]));
    await turn();
    expect(readBy(client)).toMatchObject({ messages: ["1output", expect.any(String)], close: "1000" });
  });
});

describe("a session over WebSocket that passes through", () => {
  const refusing: SessionObserver = {
    isRequired: false,
    payload: { node: true },
    onData: (_stream, _from, part) =>
      Buffer.from(part).includes("ecret") ? endOf("refused", "not this") : undefined,
  };

  it("passes the frames before one that is refused, and our failure in its place", async () => {
    const { client, node } = relayed("exec", "v5.channel.k8s.io", [refusing]);
    node.push(
      Buffer.concat([
        frame("\u0001one"),
        frame("\u0001secret"),
        frame("\u0001two"),
        frame(`\u0003${STATUS}`),
      ]),
    );
    await turn();
    expect(readBy(client)).toEqual({
      messages: ["\u0001one", `\u0003${failure("not this")}`],
      close: "1000",
    });
  });

  it("is broken off where some of the refused frame has passed: a failure would be its payload", async () => {
    const session = relayed("exec", "v5.channel.k8s.io", [refusing]);
    const { client, node } = session;
    node.push(frame("\u0001secret").subarray(0, 4));
    await turn();
    node.push(Buffer.concat([frame("\u0001secret").subarray(4), frame(`\u0003${STATUS}`)]));
    await turn();
    expect(readBy(client)).toEqual({ messages: [], close: undefined });
    expect([session.causes, client.destroyed]).toEqual([["refused"], true]);
  });

  it("does not pass what is refused of the frame that an end waits for", async () => {
    const session = relayed("exec", "v5.channel.k8s.io", [refusing]);
    const { client, node, life } = session;
    node.push(frame("\u0001a secret").subarray(0, 5));
    await turn();
    life.cut("shutdown", BYE);
    node.push(frame("\u0001a secret").subarray(5));
    await turn();
    expect(Buffer.from(client.sentBytes).toString("latin1")).not.toContain("ecret");
    expect([session.causes, client.destroyed]).toEqual([["shutdown"], true]);
  });

  it.each([
    ["its Status", frame(`\u0003${STATUS}`)],
    ["its Close", Buffer.from(encodeClose(1000, ""))],
    ["both", Buffer.concat([frame(`\u0003${STATUS}`), encodeClose(1000, "")])],
  ])("has our failure where the node sends %s behind the frame that we wait for", async (_name, rest) => {
    const { client, node, life } = relayed("exec", "v5.channel.k8s.io");
    node.push(frame("1output").subarray(0, 4));
    await turn();
    life.cut("shutdown", BYE);
    node.push(Buffer.concat([frame("1output").subarray(4), rest]));
    await turn();
    expect(readBy(client)).toEqual({ messages: ["1output", `\u0003${failure(BYE)}`], close: "1000" });
  });

  it("ends a message whose last fragment is not awaited", async () => {
    const { client, node, life } = relayed("exec", "v5.channel.k8s.io");
    node.push(frame("1frag", { isLast: false }));
    await turn();
    life.cut("shutdown", BYE);
    expect(readBy(client)).toMatchObject({
      messages: ["1frag", expect.stringContaining(BYE)],
      close: "1000",
    });
  });

  it("is broken off where the node's frame does not end in time", async () => {
    const session = relayed("exec", "v5.channel.k8s.io");
    const { client, node, life, clock } = session;
    node.push(frame("1output").subarray(0, 4));
    await turn();
    life.cut("shutdown", BYE);
    clock.advance(BOUNDARY_WAIT_MS - 1);
    expect([session.causes, client.destroyed]).toEqual([[], false]);
    clock.advance(1);
    expect([session.causes, client.destroyed]).toEqual([["shutdown"], true]);
    expect(readBy(client).close).toBeUndefined();
  });

  it.each([
    1, 2,
  ])("has its reason where of the node's frame no more than %s bytes of its header came", async (bytes) => {
    const session = relayed("exec", "v5.channel.k8s.io");
    const { client, node } = session;
    node.push(Buffer.concat([frame("1out"), frame("1more").subarray(0, bytes)]));
    await turn();
    node.destroy(new Error("killed"));
    await expect.poll(() => session.causes).toEqual(["upstream-lost"]);
    const { messages, close } = readBy(client);
    expect(messages).toEqual(["1out", expect.stringContaining('"status":"Failure"')]);
    expect(close).toBe("1000");
  });

  it.each([
    ["ends its connection", (node: MemorySocket) => node.push(null)],
    ["breaks", (node: MemorySocket) => node.destroy(new Error("reset"))],
  ])("whose node %s without a status has one that says so", async (_name, act) => {
    const session = relayed("exec", "v4.channel.k8s.io");
    const { client, node } = session;
    node.push(frame("1out"));
    await turn();
    act(node);
    await expect.poll(() => session.causes).toEqual(["upstream-lost"]);
    const { messages, close } = readBy(client);
    expect(messages[1]).toContain('"status":"Failure"');
    expect(close).toBe("1000");
  });

  it("never ends with 1000 and no Status: clients take that for exit code 0", async () => {
    const { client, node } = relayed("exec", "v5.channel.k8s.io");
    node.push(Buffer.concat([frame("1out"), encodeClose(1000, "")]));
    node.push(null);
    await expect.poll(() => readBy(client).close).toBe("1000");
    expect(readBy(client).messages).toEqual([
      "1out",
      `\u0003${failure("the node ended the session without a status")}`,
    ]);
  });

  it.each([
    ["with its Status", "v5.channel.k8s.io", [`\u0003${STATUS}`]],
    ["in v1, where success is no status", "channel.k8s.io", []],
  ])("is not told of a failure where the node closes %s", async (_name, protocol, messages) => {
    const { client, node } = relayed("exec", protocol);
    node.push(Buffer.concat([...messages.map((text) => frame(text)), encodeClose(1000, "")]));
    node.push(null);
    await expect.poll(() => readBy(client).close).toBe("1000");
    expect(readBy(client).messages).toEqual(messages);
  });

  it("of a legacy port-forward is closed with the reason", async () => {
    const protocol = "v4.channel.k8s.io";
    const { client, life } = relayed("portforward", protocol);
    life.cut("idle", "the session was idle for too long");
    expect(readBy(client)).toEqual({ messages: [], close: "1001 the session was idle for too long" });
    const lost = relayed("portforward", protocol);
    lost.node.destroy(new Error("reset"));
    await expect.poll(() => readBy(lost.client).close).toBe("1011 reset");
  });

  it("is completed where its client has the result, closes and resets", async () => {
    const session = relayed("exec", "v4.channel.k8s.io");
    const { client, node } = session;
    const pipe = webSocketPipe(node, "server");
    pipe.send(Buffer.from(`\u0003${STATUS}`));
    pipe.close();
    await turn();
    client.push(encodeClose(1000, "", MASK_KEY));
    await turn();
    node.push(null);
    await turn();
    client.destroy(new Error("reset"));
    await expect.poll(() => session.causes).toEqual(["completed"]);
  });
});
