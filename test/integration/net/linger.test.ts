import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { finishAndLinger } from "../../../packages/client/src/net/linger.ts";
import { closeServer, listen } from "../../support/http/loopback.ts";
import { ManualClock } from "../../support/manual-clock.ts";

// The bound under test.
const LINGER_PROGRESS_BYTES = 1024 * 1024;

const TIMES = { lingerIdleMs: 1_000, lingerMaxMs: 5_000 };
const LARGE_BYTES = 16 * 1024 * 1024;

let server: Server;
let ours: Socket;
let peer: Socket;
let clock: ManualClock;

beforeEach(async () => {
  clock = new ManualClock();
  const accepted = deferred<Socket>();
  server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    accepted.resolve(socket);
  });
  peer = connect({ port: await listen(server), host: "127.0.0.1", allowHalfOpen: true });
  peer.on("error", () => {});
  await once(peer, "connect");
  ours = await accepted.promise;
});

afterEach(async () => {
  peer.destroy();
  await closeServer(server, [ours]);
});

/** Promise.withResolvers is newer than Node 20. */
function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

describe("finishAndLinger", () => {
  it("half-closes, and lets go when the peer closes", async () => {
    finishAndLinger(ours, TIMES, clock);
    peer.resume();
    await once(peer, "end");
    expect(ours.destroyed).toBe(false);
    peer.end();
    await once(ours, "close");
    expect(clock.listenerCount).toBe(0);
  });

  it("lets go of a peer that had closed before", async () => {
    ours.resume();
    peer.end();
    await once(ours, "end");
    finishAndLinger(ours, TIMES, clock);
    await once(ours, "close");
    expect(clock.listenerCount).toBe(0);
  });

  it.each([
    ["a node that has taken everything is left", "node", true],
    ["a client is not", "client", false],
  ] as const)("in a hurry, %s", async (_name, who, isLeft) => {
    const isTaken = once(peer, "end");
    ours.write("last");
    finishAndLinger(ours, TIMES, clock, who);
    peer.resume();
    await isTaken;
    clock.advance(100);
    expect(ours.destroyed).toBe(false);
    clock.hurry();
    clock.advance(100);
    expect(ours.destroyed).toBe(isLeft);
  });

  it.each([
    ["a node that the kernel has everything for is left at once", "node", true],
    ["a client is not", "client", false],
  ] as const)("once in a hurry, %s", async (_name, who, isLeft) => {
    clock.hurry();
    const received: Buffer[] = [];
    peer.on("data", (chunk) => received.push(chunk));
    const isTaken = once(peer, "end");
    ours.write("last");
    finishAndLinger(ours, TIMES, clock, who);
    expect(ours.destroyed).toBe(isLeft);
    await isTaken;
    expect(`${Buffer.concat(received)}`).toBe("last");
  });

  it("once in a hurry, a node that still takes our bytes is not left", async () => {
    clock.hurry();
    ours.write(Buffer.alloc(LARGE_BYTES, "x"));
    finishAndLinger(ours, TIMES, clock, "node");
    expect(ours.destroyed).toBe(false);
    let received = 0;
    peer.on("data", (chunk) => (received += chunk.length));
    await once(peer, "end");
    expect(received).toBe(LARGE_BYTES);
  });

  it("in a hurry, a node that still takes our bytes is not left", async () => {
    ours.write(Buffer.alloc(LARGE_BYTES, "x"));
    finishAndLinger(ours, TIMES, clock, "node");
    clock.hurry();
    clock.advance(100);
    expect(ours.destroyed).toBe(false);
    let received = 0;
    peer.on("data", (chunk) => (received += chunk.length));
    await once(peer, "end");
    expect(received).toBe(LARGE_BYTES);
  });

  it("is nothing to do for a destroyed socket", () => {
    ours.destroy();
    finishAndLinger(ours, TIMES, clock);
    expect(clock.listenerCount).toBe(0);
  });

  it("a peer that sends all the while loses nothing of what was written", async () => {
    ours.write(Buffer.alloc(LARGE_BYTES, "x"));
    finishAndLinger(ours, TIMES, clock);
    let received = 0;
    peer.on("data", (chunk) => {
      received += chunk.length;
      // What makes a closed socket's kernel answer with RST, and drop what it has not sent.
      peer.write("ping");
    });
    await once(peer, "end");
    expect(received).toBe(LARGE_BYTES);
    peer.end();
    await once(ours, "close");
  });

  it("a silent peer that never closes is let go after lingerIdle, not before", async () => {
    finishAndLinger(ours, TIMES, clock);
    peer.resume();
    await once(peer, "end");
    clock.advance(TIMES.lingerIdleMs - 1);
    expect(ours.destroyed).toBe(false);
    clock.advance(1);
    expect(ours.destroyed).toBe(true);
    await once(ours, "close");
    expect(clock.listenerCount).toBe(0);
  });

  it("a peer that keeps sending is let go after lingerMax, not before", async () => {
    finishAndLinger(ours, TIMES, clock);
    peer.resume();
    let heard = 0;
    for (let elapsedMs = 500; elapsedMs < TIMES.lingerMaxMs; elapsedMs += 500) {
      peer.write("x");
      heard += 1;
      await expect.poll(() => ours.bytesRead).toBe(heard);
      clock.advance(500);
      expect(ours.destroyed).toBe(false);
    }
    clock.advance(500);
    expect(ours.destroyed).toBe(true);
  });

  it("a peer that reads slowly is not silent: what it takes counts as a sign of life", async () => {
    // More than the kernel holds, so that the first write waits for the peer, and the second for the first.
    ours.write(Buffer.alloc(LARGE_BYTES, "x"));
    ours.write(Buffer.alloc(LARGE_BYTES, "y"));
    finishAndLinger(ours, TIMES, clock);
    clock.advance(TIMES.lingerIdleMs - 1);
    let received = 0;
    peer.on("data", (chunk) => {
      received += chunk.length;
      if (ours.writableLength <= LARGE_BYTES) peer.pause();
    });
    await expect.poll(() => ours.writableLength).toBe(LARGE_BYTES);
    clock.advance(1);
    clock.advance(TIMES.lingerIdleMs - 1);
    expect(ours.destroyed).toBe(false);
    peer.removeAllListeners("data");
    peer.on("data", (chunk) => {
      received += chunk.length;
    });
    peer.resume();
    await once(peer, "end");
    expect(received).toBe(2 * LARGE_BYTES);
  });

  it("a peer that takes its queue in drops is let go after lingerMax, not before", () => {
    // A queue whose length the test chooses: kernels take bytes in pieces of their own.
    let queued = 4 * LINGER_PROGRESS_BYTES;
    Object.defineProperty(ours, "undeliveredBytes", { get: () => queued });
    finishAndLinger(ours, TIMES, clock);
    const takeDrops = (ms: number): void => {
      for (let elapsedMs = 0; elapsedMs < ms; elapsedMs += 500) {
        queued -= 1;
        clock.advance(500);
      }
    };
    takeDrops(TIMES.lingerMaxMs - 500);
    expect(ours.destroyed).toBe(false);
    // What a slow reader takes gives it as long again, once for each piece.
    queued -= LINGER_PROGRESS_BYTES;
    takeDrops(TIMES.lingerMaxMs);
    expect(ours.destroyed).toBe(false);
    takeDrops(500);
    expect(ours.destroyed).toBe(true);
  });

  it("a peer that reads nothing of what is queued is let go after lingerIdle", async () => {
    peer.pause();
    for (let written = 0; written < LARGE_BYTES; written += 65_536) ours.write(Buffer.alloc(65_536, "x"));
    finishAndLinger(ours, TIMES, clock);
    let queuedBytes = -1;
    const isStalled = (): boolean => {
      const isSame = queuedBytes === ours.writableLength;
      queuedBytes = ours.writableLength;
      return isSame && queuedBytes > 0;
    };
    await expect.poll(isStalled).toBe(true);
    clock.advance(0);
    clock.advance(TIMES.lingerIdleMs - 1);
    expect(ours.destroyed).toBe(false);
    clock.advance(1);
    expect(ours.destroyed).toBe(true);
  });

  it("a peer that breaks its connection is let go at once", async () => {
    finishAndLinger(ours, TIMES, clock);
    peer.resetAndDestroy();
    await new Promise((resolve) => ours.once("close", resolve));
    expect(clock.listenerCount).toBe(0);
  });
});
