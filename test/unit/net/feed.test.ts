import { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { Pace } from "../../../src/net/bandwidth.ts";
import { feed } from "../../../src/net/feed.ts";

const KIB = 1024;
const CHUNK = Buffer.alloc(32 * KIB, 1);

/** A source that always has more to read, up to `chunks`, as a socket whose peer is faster than we are. */
function sourceOf(chunks: number): Duplex {
  let left = chunks;
  return new Duplex({
    read() {
      this.push(left-- > 0 ? CHUNK : null);
    },
  });
}

/** A sink that takes everything at once and counts it. */
function countingSink(): { sink: Duplex; taken: () => number } {
  let bytes = 0;
  const sink = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      bytes += chunk.byteLength;
      done();
    },
  });
  return { sink, taken: () => bytes };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("feed", () => {
  it("lets others have their turn: a source that never runs dry moves 512 KiB in each turn of the event loop", async () => {
    const source = sourceOf(64);
    const { sink, taken } = countingSink();
    feed(source, sink, (chunk) => sink.write(chunk));
    const seen: number[] = [];
    for (let count = 0; count < 8 && taken() < 2048 * KIB; count++) {
      await turn();
      seen.push(taken());
    }
    const steps = seen.map((bytes, index) => bytes - (seen[index - 1] ?? 0));
    expect(taken()).toBe(2048 * KIB);
    expect(Math.max(...steps)).toBeLessThanOrEqual(512 * KIB);
    expect(steps.length).toBeGreaterThanOrEqual(4);
  });

  it("resumes one source in each turn, in the order in which they had theirs", async () => {
    const moved: number[] = [];
    const sinks = [0, 1, 2, 3].map((number) => {
      const { sink, taken } = countingSink();
      feed(sourceOf(64), sink, (chunk) => {
        if (taken() % (512 * KIB) === 0) moved.push(number);
        sink.write(chunk);
      });
      return taken;
    });
    const total = () => sinks.reduce((sum, taken) => sum + taken(), 0);
    await turn();
    const first = total();
    for (let count = 1; count <= 8; count++) {
      await turn();
      expect(total() - first).toBeLessThanOrEqual(count * 512 * KIB);
    }
    for (let count = 0; count < 20 && total() < 8192 * KIB; count++) await turn();
    expect(sinks.map((taken) => taken())).toEqual([0, 1, 2, 3].map(() => 2048 * KIB));
    expect(moved).toEqual([0, 1, 2, 3].flatMap(() => [0, 1, 2, 3]));
  });

  it("lets the next source resume where one was destroyed while it waited", async () => {
    const [gone, stays] = [sourceOf(64), sourceOf(64)];
    const { sink, taken } = countingSink();
    for (const source of [gone, stays]) feed(source, sink, (chunk) => sink.write(chunk));
    await turn();
    gone.destroy();
    for (let count = 0; count < 12 && taken() < 2560 * KIB; count++) await turn();
    expect(taken()).toBe((2048 + 512) * KIB);
  });

  it("does not resume for its turn what the sink or a pace holds up", async () => {
    const source = sourceOf(32);
    let release: (() => void) | undefined;
    const sink = new Duplex({
      read() {},
      writableHighWaterMark: 512 * KIB,
      write(_chunk: Buffer, _encoding, done) {
        release = done;
      },
    });
    feed(source, sink, (chunk) => sink.write(chunk));
    for (let count = 0; count < 5; count++) await turn();
    expect(source.isPaused()).toBe(true);
    expect(sink.writableLength).toBe(512 * KIB);
    release?.();
    expect(source.isPaused()).toBe(true);

    const paced = sourceOf(32);
    const { sink: free, taken } = countingSink();
    let wake = (): void => {};
    feed(paced, free, (chunk) => free.write(chunk), {
      spend: () => (taken() >= 512 * KIB ? 1_000 : 0),
      onHold: () => {},
      wakeIn: (_waitMs: number, go: () => void) => {
        wake = go;
      },
    } as never);
    for (let count = 0; count < 5; count++) await turn();
    expect(taken()).toBe(512 * KIB);
    wake();
    await turn();
    expect(taken()).toBeGreaterThan(512 * KIB);
  });

  it("reads nothing while its pace is held, at its start, in its middle, and by each of several holds", async () => {
    const source = sourceOf(32);
    const { sink, taken } = countingSink();
    const pace = new Pace();
    const first = pace.hold();
    feed(source, sink, (chunk) => sink.write(chunk), pace);
    for (let count = 0; count < 5; count++) await turn();
    expect(taken()).toBe(0);
    first();
    await turn();
    const second = pace.hold();
    const third = pace.hold();
    const before = taken();
    expect(before).toBeGreaterThan(0);
    second();
    second();
    sink.emit("drain");
    for (let count = 0; count < 5; count++) await turn();
    expect([taken(), source.isPaused()]).toEqual([before, true]);
    third();
    for (let count = 0; count < 8; count++) await turn();
    expect(taken()).toBe(1024 * KIB);
  });
});
