import { duplexPair } from "node:stream";
import { describe, expect, it } from "vitest";
import { ResumableSocket } from "../../../packages/client/src/sessions/resumable-socket.ts";
import { MAX_HEADER_BYTES, writeAck } from "../../../protocols/resume/frames.ts";
import {
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  writeMaskedFrameHeader,
} from "../../../protocols/websocket/index.ts";
import { ManualClock } from "../../support/manual-clock.ts";

// The bound under test.
const COMPLETED_WINDOW_MS = 10_000;

const WINDOW_MS = 120_000;

function start() {
  const clock = new ManualClock();
  const ends: string[] = [];
  const socket = new ResumableSocket({
    role: "server",
    clock,
    lingerTimes: { lingerIdleMs: 1_000, lingerMaxMs: 5_000 },
    pingIntervalMs: 5_000,
    silenceMs: 15_000,
    windowBytes: 64 * 1024,
    windowMs: WINDOW_MS,
    onOver: (end) => ends.push(end),
  });
  const [ours, clients] = duplexPair();
  clients.resume();
  /** Acknowledges every byte and the end, as a client's frame. */
  const acknowledge = (received: number): void => {
    const frame = new Uint8Array(MAX_HEADER_BYTES);
    const bytes = writeAck(frame, received, 64 * 1024);
    const message = Buffer.alloc(MAX_FRAME_HEADER_BYTES + bytes);
    const at = writeMaskedFrameHeader(message, 0, OPCODE.BINARY, bytes, true, 0);
    message.set(frame.subarray(0, bytes), at);
    clients.write(message.subarray(0, at + bytes));
  };
  socket.attach({ socket: ours, head: new Uint8Array(0) } as never, 0);
  socket.resume();
  return { clock, ends, socket, clients, acknowledge };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a session whose client has been sent everything", () => {
  it("waits briefly for one whose connection ended", async () => {
    const { clock, ends, socket, clients } = start();
    socket.end("the last output");
    await settled();
    clients.end();
    await settled();
    expect(socket.isAway).toBe(true);
    clock.advance(COMPLETED_WINDOW_MS - 1);
    expect(socket.isAway).toBe(true);
    clock.advance(1);
    await settled();
    expect([socket.isAway, ends]).toEqual([false, ["expired"]]);
  });

  it("waits for its whole window for one that has fallen silent", async () => {
    const { clock, socket } = start();
    socket.end("the last output");
    await settled();
    clock.advance(15_000);
    await settled();
    expect(socket.isAway).toBe(true);
    clock.advance(WINDOW_MS - 1);
    expect(socket.isAway).toBe(true);
    clock.advance(1);
    await settled();
    expect(socket.isAway).toBe(false);
  });
});

describe("a session whose client has acknowledged everything", () => {
  const OUTPUT = "the last output";

  it("is complete once the connection ends, with or without the client's own end", async () => {
    const { ends, socket, clients, acknowledge } = start();
    socket.end(OUTPUT);
    await settled();
    acknowledge(OUTPUT.length + 1);
    await settled();
    expect([socket.isAway, ends]).toEqual([false, []]);
    clients.end();
    await settled();
    expect([socket.isAway, ends]).toEqual([false, ["completed"]]);
  });

  it("is complete once the client has fallen silent", async () => {
    const { clock, ends, socket, acknowledge } = start();
    socket.end(OUTPUT);
    await settled();
    acknowledge(OUTPUT.length + 1);
    await settled();
    // What the client sent last was heard until now.
    clock.advance(1);
    clock.advance(15_000);
    await settled();
    expect([socket.isAway, ends]).toEqual([false, ["completed"]]);
  });

  it("waits for one that has all of the output, and not its end", async () => {
    const { ends, socket, clients, acknowledge } = start();
    socket.end(OUTPUT);
    await settled();
    acknowledge(OUTPUT.length);
    await settled();
    clients.end();
    await settled();
    expect([socket.isAway, ends]).toEqual([true, []]);
    socket.destroy();
  });
});

it("a session that still has output waits for its whole window", async () => {
  const { clock, socket, clients } = start();
  socket.write("some output");
  await settled();
  clients.end();
  await settled();
  clock.advance(WINDOW_MS - 1);
  expect(socket.isAway).toBe(true);
  socket.destroy();
});
