import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { endOf } from "../../../packages/client/src/sessions/session-end.ts";
import {
  defaultSpdyLimits,
  FrameDecoder,
  GOAWAY,
  RST,
  type SpdyLimits,
} from "../../../protocols/spdy/index.ts";
import { BOUNDARY_WAIT_MS, Relay } from "../../../src/sessions/carriers/relay.ts";
import type { SessionObserver } from "../../../src/sessions/observers/session-observer.ts";
import { passThroughOf } from "../../../src/sessions/relayed-session.ts";
import type { StreamingRequest } from "../../../src/sessions/streaming-request.ts";
import { CarriedSession } from "../../support/carried-session.ts";
import { plainPipe, spdyPeer } from "../../support/session-peers.ts";

const NOTHING = new Uint8Array(0);
const PORT = 8080;
const IDLE = "the session was idle for too long";

/** A SPDY port-forward that passes through, with `connections` to the port that the node has accepted. */
async function forwarded(connections: number, ...observers: SessionObserver[]) {
  return forwardedWithin(defaultSpdyLimits, connections, ...observers);
}

async function forwardedWithin(spdy: SpdyLimits, connections: number, ...observers: SessionObserver[]) {
  const offer = { transport: "spdy" } as StreamingRequest["offer"];
  const { ends, decoderFor } = passThroughOf(
    { offer, subresource: "portforward", ports: [] },
    [["X-Stream-Protocol-Version", "portforward.k8s.io"]],
    { spdy },
  );
  const carried = new CarriedSession({}, [ends, ...observers]);
  const { client, node } = carried;
  for (const socket of [client, node]) socket.on("error", () => {});
  const [downstream, upstream] = [client, node].map((socket) => ({ socket, head: NOTHING }));
  carried.carry(
    (life) =>
      new Relay(downstream as never, upstream as never, life, { decoder: decoderFor(life.observers), ends }),
  );
  const clientPeer = spdyPeer(plainPipe(client), "client");
  const nodePeer = spdyPeer(plainPipe(node), "server");
  for (let connection = 0; connection < connections; connection++) clientPeer.open(PORT);
  await turn();
  nodePeer.receive();
  await turn();
  return Object.assign(carried, { clientPeer, nodePeer, ...framesTo(carried) });
}

/** The frames that the client was sent since, and whether its connection was ended or broken off. */
function framesTo({ client }: CarriedSession) {
  let isReset = false;
  (client as unknown as { resetAndDestroy(): void }).resetAndDestroy = () => {
    isReset = true;
  };
  const frames: string[] = [];
  const decoder = new FrameDecoder(
    {
      onData: (id, part, fin) => void frames.push(`DATA ${id} ${Buffer.from(part)}${fin ? " FIN" : ""}`),
      onControl: (frame) => {
        if (frame.type === "RST_STREAM") frames.push(`RST_STREAM ${frame.streamId} ${frame.status}`);
        else if (frame.type === "GOAWAY") frames.push(`GOAWAY ${frame.lastGoodStreamId} ${frame.status}`);
        else if (frame.type !== "SYN_REPLY") frames.push(frame.type);
      },
    },
    defaultSpdyLimits,
    "skip",
  );
  const read = () => {
    for (const bytes of client.sent.splice(0)) decoder.push(bytes);
    return frames.splice(0);
  };
  return { read, isBroken: () => isReset || (client.destroyed && !client.writableFinished) };
}

const reason = (id: number, text: string): string => `DATA ${id} error forwarding port ${PORT}: ${text} FIN`;
const reset = (id: number): string => `RST_STREAM ${id} ${RST.CANCEL}`;

/** Takes every frame apart, so that the session is decoded whole. */
const SEEING: SessionObserver = {
  isRequired: false,
  payload: { node: true, input: true, sizes: true },
  onStreamEnd: () => {},
};

describe.each([
  ["without observers", []],
  ["with an observer of its payload", [SEEING]],
])("a SPDY port-forward that passes through and is ended here, %s", (_name, observers) => {
  it.each(["idle", "time-limit", "shutdown"] as const)("says why on each connection: %s", async (cause) => {
    const { life, read, client, reports } = await forwarded(2, ...observers);
    expect([read(), reports]).toEqual([[], []]);
    life.cut(cause, IDLE);
    expect(read()).toEqual([reason(1, IDLE), reason(5, IDLE), reset(3), reset(7), `GOAWAY 7 ${GOAWAY.OK}`]);
    await expect.poll(() => client.writableFinished).toBe(true);
    expect(reports.map((report) => report.cause)).toEqual([cause]);
  });

  it("says nothing of connections that the node had finished", async () => {
    const { life, read, nodePeer, clientPeer } = await forwarded(1, ...observers);
    nodePeer.send("data", "whole");
    nodePeer.finish("data");
    await turn();
    life.cut("idle", IDLE);
    expect(read()).toEqual(["DATA 3 whole", "DATA 3  FIN", reset(1), reset(3), `GOAWAY 3 ${GOAWAY.OK}`]);
    const over = await forwarded(1, ...observers);
    for (const stream of ["data", "error"]) over.nodePeer.finish(stream);
    over.clientPeer.finish("data");
    await turn();
    over.life.cut("idle", IDLE);
    expect(over.read()).toEqual(["DATA 3  FIN", "DATA 1  FIN", `GOAWAY 3 ${GOAWAY.OK}`]);
    expect(clientPeer.ended).toEqual([]);
  });

  it("resets streams that the node has not accepted: text on them would be dropped", async () => {
    const { life, read, clientPeer } = await forwarded(0, ...observers);
    clientPeer.open(PORT);
    await turn();
    life.cut("shutdown", "bye");
    expect(read()).toEqual([reset(1), reset(3), `GOAWAY 3 ${GOAWAY.OK}`]);
  });

  it("ends without connections by GOAWAY alone", async () => {
    const { life, read } = await forwarded(0, ...observers);
    life.cut("idle", IDLE);
    expect(read()).toEqual([`GOAWAY 0 ${GOAWAY.OK}`]);
  });

  it.each([
    1, 4, 8, 10,
  ])("has the rest of the node's frame first, of which %s bytes came, and none of the next", async (bytes) => {
    const { life, read, node, client, isBroken } = await forwarded(1, ...observers);
    const frame = Buffer.from("0000000300000006", "hex");
    const whole = Buffer.concat([frame, Buffer.from("output")]);
    node.push(whole.subarray(0, bytes));
    await turn();
    life.cut("idle", IDLE);
    expect(client.writableEnded).toBe(false);
    node.push(Buffer.concat([whole.subarray(bytes), whole]));
    await turn();
    const [first, ...rest] = read().join("").split("error forwarding");
    expect(first?.replaceAll(/DATA 3 /g, "")).toBe("outputDATA 1 ");
    expect(rest.join("")).toContain(IDLE);
    expect(rest.join("")).toMatch(/RST_STREAM 3 5GOAWAY 3 0$/);
    expect(isBroken()).toBe(false);
  });

  it("is broken off where that frame does not end in time", async () => {
    const { life, node, clock, client, reports } = await forwarded(1, ...observers);
    node.push(Buffer.from("000000030000000661", "hex"));
    await turn();
    life.cut("idle", IDLE);
    clock.advance(BOUNDARY_WAIT_MS - 1);
    expect([reports, client.destroyed]).toEqual([[], false]);
    clock.advance(1);
    expect([reports.map(({ cause }) => cause), client.destroyed]).toEqual([["idle"], true]);
  });
});

describe("a SPDY port-forward whose node is lost", () => {
  it.each([
    [
      "breaks",
      (node: { destroy(error: Error): unknown }) => node.destroy(new Error("reset")),
      "reset without GOAWAY",
    ],
    [
      "ends its connection",
      (node: { push(end: null): unknown }) => node.push(null),
      "the node ended the connection without GOAWAY",
    ],
  ])("says so: the node %s", async (_name, act, text) => {
    const session = await forwarded(1);
    act(session.node as never);
    await expect.poll(() => session.causes).toEqual(["upstream-lost"]);
    expect(session.read()).toEqual([reason(1, text), reset(3), `GOAWAY 3 ${GOAWAY.INTERNAL_ERROR}`]);
    expect(session.isBroken()).toBe(false);
  });

  it("is broken off in the middle of a frame, which nothing can follow", async () => {
    const { node, client, reports } = await forwarded(1);
    node.push(Buffer.from("000000030000000661", "hex"));
    node.push(null);
    await expect.poll(() => client.destroyed).toBe(true);
    expect(client.writableEnded).toBe(false);
    expect(reports.map(({ cause }) => cause)).toEqual(["upstream-lost"]);
  });

  it("has the node's own GOAWAY and nothing behind it", async () => {
    const session = await forwarded(1);
    session.nodePeer.leave();
    session.node.push(null);
    await expect.poll(() => session.client.writableFinished).toBe(true);
    expect(session.read()).toEqual(["GOAWAY 3 0"]);
  });
});

it("a SPDY port-forward follows no more streams than a connection may have open", async () => {
  const { life, read } = await forwardedWithin({ ...defaultSpdyLimits, maxStreams: 2 }, 3);
  life.cut("idle", IDLE);
  expect(read()).toEqual([reason(1, IDLE), reset(3), `GOAWAY 11 ${GOAWAY.OK}`]);
});

it("a port that policy forbids is refused by RST_STREAM and GOAWAY, and reaches no node", async () => {
  const refusing: SessionObserver = {
    isRequired: true,
    onStream: () => endOf("refused", "port 22 is denied"),
  };
  const session = await forwarded(0, refusing);
  session.clientPeer.open(22);
  await turn();
  expect(session.read()).toEqual([reset(1), `GOAWAY 1 ${GOAWAY.PROTOCOL_ERROR}`]);
  expect(session.node.sentBytes.length).toBe(0);
});

describe("a port that policy forbids, while the node is within a frame", () => {
  const FRAME = Buffer.concat([Buffer.from("0000000300000006", "hex"), Buffer.from("secret")]);
  const refusing = (more: Partial<SessionObserver>): SessionObserver => ({
    isRequired: true,
    onStream: ({ port }) => (port === "22" ? endOf("refused", "port 22 is denied") : undefined),
    ...more,
  });

  it.each([
    ["without an observer of payload", {}],
    ["with one", { payload: { node: true, input: true } }],
  ])("is refused with the reason behind the frame, %s", async (_name, more) => {
    const session = await forwarded(1, refusing(more));
    session.node.push(FRAME.subarray(0, 10));
    await turn();
    session.clientPeer.open(22);
    await turn();
    session.node.push(Buffer.concat([FRAME.subarray(10), FRAME]));
    await turn();
    const frames = session.read();
    expect(frames.filter((frame) => frame.startsWith("DATA 3")).join("")).toBe("DATA 3 seDATA 3 cret");
    expect(frames.slice(-4)).toEqual([
      reason(1, "port 22 is denied"),
      reset(3),
      reset(5),
      `GOAWAY 5 ${GOAWAY.PROTOCOL_ERROR}`,
    ]);
    expect(session.isBroken()).toBe(false);
  });

  it("does not let pass what an observer refuses of that frame", async () => {
    const onData: SessionObserver["onData"] = (_stream, from, part) =>
      from === "node" && Buffer.from(part).includes("cret") ? endOf("refused", "not this") : undefined;
    const session = await forwarded(1, refusing({ payload: { node: true }, onData }));
    session.node.push(FRAME.subarray(0, 10));
    await turn();
    session.clientPeer.open(22);
    await turn();
    session.node.push(FRAME.subarray(10));
    await turn();
    expect(session.read().join("")).not.toContain("cret");
    session.clock.advance(BOUNDARY_WAIT_MS);
    expect([session.causes, session.isBroken()]).toEqual([["refused"], true]);
  });
});
