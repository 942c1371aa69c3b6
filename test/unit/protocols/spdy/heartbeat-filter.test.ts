import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodePing, HeartbeatFilter, writeDataHeader } from "../../../../protocols/spdy/index.ts";

const BEATS = fc.record({ kind: fc.constant("ping" as const), id: fc.integer({ min: 1, max: 0xffff_ffff }) });
const DATA = fc.record({ kind: fc.constant("data" as const), payload: fc.uint8Array({ maxLength: 40 }) });
/** Of an unknown type, and of PING with another length: the receiver's business. */
const OTHER = fc.record({ kind: fc.constant("other" as const), payload: fc.uint8Array({ maxLength: 40 }) });
const GOAWAY = Buffer.from("8003000700000008" + "0000000000000000", "hex");

function bytesOf(frame: typeof BEATS | typeof DATA | typeof OTHER extends fc.Arbitrary<infer F> ? F : never) {
  if (frame.kind === "ping") return Buffer.from(encodePing({ type: "PING", id: frame.id }));
  const header = new Uint8Array(8);
  writeDataHeader(header, 0, 5, frame.payload.length, false);
  if (frame.kind === "other") header.set([0x80, 3, 0, frame.payload.length === 4 ? 9 : 6]);
  return Buffer.concat([header, frame.payload]);
}

/** Everything that came of `wire` in pieces of these lengths; a mark is asked for behind each. */
function filtered(wire: Buffer, lengths: readonly number[], mark = Buffer.alloc(0)) {
  const passed: Buffer[] = [];
  const pings: number[] = [];
  let goAways = 0;
  const filter = new HeartbeatFilter({
    onBytes: (bytes) => void passed.push(Buffer.from(bytes)),
    onPing: (id) => void pings.push(id),
    onGoAway: () => {
      goAways += 1;
    },
    onBoundary: () => void passed.push(mark),
  });
  for (let at = 0, turn = 0; at < wire.length; turn++) {
    const length = lengths[turn % lengths.length] as number;
    filter.push(Buffer.from(wire.subarray(at, at + length)));
    at += length;
    if (mark.length === 0) continue;
    if (filter.isBetweenFrames) passed.push(mark);
    else filter.awaitBoundary();
  }
  return { passed: Buffer.concat(passed), pings, goAways };
}

const frames = fc.array(fc.oneof(BEATS, DATA, OTHER), { maxLength: 15 });
const pieces = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });

describe("a filter of SPDY heartbeats", () => {
  it("passes every byte but those of PINGs, however they are cut", () => {
    fc.assert(
      fc.property(frames, pieces, (all, lengths) => {
        const wire = Buffer.concat([...all.map(bytesOf), GOAWAY]);
        const kept = Buffer.concat([...all.filter(({ kind }) => kind !== "ping").map(bytesOf), GOAWAY]);
        const { passed, pings, goAways } = filtered(wire, lengths);
        expect(passed.equals(kept)).toBe(true);
        expect(pings).toEqual(all.flatMap((frame) => (frame.kind === "ping" ? [frame.id] : [])));
        expect(goAways).toBe(1);
      }),
    );
  });

  it("finds a place between two frames for what is to be inserted", () => {
    const mark = Buffer.from(encodePing({ type: "PING", id: 7 }));
    fc.assert(
      fc.property(frames, pieces, (all, lengths) => {
        const wire = Buffer.concat(all.map(bytesOf));
        const kept = Buffer.concat(all.filter(({ kind }) => kind !== "ping").map(bytesOf));
        const marked = filtered(wire, lengths, mark);
        // Read again, the marks are PINGs between whole frames, and nothing else is missing.
        const again = filtered(marked.passed, [1e6]);
        expect(again.passed.equals(kept)).toBe(true);
        if (wire.length > 0) expect(again.pings.length).toBeGreaterThan(0);
        expect(new Set(again.pings)).toEqual(new Set(wire.length > 0 ? [7] : []));
      }),
    );
  });

  it("passes a chunk without heartbeats as it is", () => {
    const chunk = bytesOf({ kind: "data", payload: Buffer.from("payload") });
    const passed: Uint8Array[] = [];
    const filter = new HeartbeatFilter({
      onBytes: (bytes) => void passed.push(bytes),
      onPing: () => {},
      onGoAway: () => {},
      onBoundary: () => {},
    });
    filter.push(chunk);
    expect(passed[0]).toBe(chunk);
  });
});
