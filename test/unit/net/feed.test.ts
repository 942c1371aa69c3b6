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
  it("lets others have their turn: a source that never runs dry moves 256 KiB of each turn of the event loop", async () => {
    const source = sourceOf(32);
    const { sink, taken } = countingSink();
    feed(source, sink, (chunk) => sink.write(chunk));
    const seen: number[] = [];
    for (let count = 0; count < 8 && taken() < 1024 * KIB; count++) {
      await turn();
      seen.push(taken());
    }
    const steps = seen.map((bytes, index) => bytes - (seen[index - 1] ?? 0));
    expect(taken()).toBe(1024 * KIB);
    expect(Math.max(...steps)).toBeLessThanOrEqual(256 * KIB);
    expect(steps.length).toBeGreaterThanOrEqual(4);
  });

  it("does not resume for its turn what the sink or a pace holds up", async () => {
    const source = sourceOf(32);
    let release: (() => void) | undefined;
    const sink = new Duplex({
      read() {},
      writableHighWaterMark: 256 * KIB,
      write(_chunk: Buffer, _encoding, done) {
        release = done;
      },
    });
    feed(source, sink, (chunk) => sink.write(chunk));
    for (let count = 0; count < 5; count++) await turn();
    expect(source.isPaused()).toBe(true);
    expect(sink.writableLength).toBe(256 * KIB);
    release?.();
    expect(source.isPaused()).toBe(true);

    const paced = sourceOf(32);
    const { sink: free, taken } = countingSink();
    let wake = (): void => {};
    feed(paced, free, (chunk) => free.write(chunk), {
      spend: () => (taken() >= 256 * KIB ? 1_000 : 0),
      onHold: () => {},
      wakeIn: (_waitMs: number, go: () => void) => {
        wake = go;
      },
    } as never);
    for (let count = 0; count < 5; count++) await turn();
    expect(taken()).toBe(256 * KIB);
    wake();
    await turn();
    expect(taken()).toBeGreaterThan(256 * KIB);
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
