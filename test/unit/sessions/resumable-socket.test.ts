import { duplexPair } from "node:stream";
import { describe, expect, it } from "vitest";
import {
  COMPLETED_WINDOW_MS,
  type ResumableEnd,
  ResumableSocket,
} from "../../../src/sessions/resumable/resumable-socket.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const WINDOW_MS = 120_000;

function start() {
  const clock = new ManualClock();
  const ends: ResumableEnd[] = [];
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
  socket.attach({ socket: ours, head: new Uint8Array(0) } as never, 0);
  socket.resume();
  return { clock, ends, socket, clients };
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
