import { describe, expect, it } from "vitest";
import type { WebSocketLimits } from "../../../../protocols/websocket/index.ts";
import { bytesOf, Recorder } from "../../../support/protocols/websocket/recorder.ts";
import { refusals, vectors } from "../../../support/protocols/websocket/vectors.ts";

/** Long wires are cut where something can go wrong: around their headers and ends. */
function cutsOf(length: number): number[] {
  const all = Array.from({ length: length + 1 }, (_, at) => at);
  return length <= 1024 ? all : all.filter((at) => at < 40 || at > length - 20 || at % 4099 === 0);
}

for (const { name, role, wire, events, meets = {} } of vectors) {
  describe(`WebSocketFrameDecoder: ${name}`, () => {
    const bytes = bytesOf(wire);

    it("decodes whole", () => {
      const recorder = new Recorder(role).push(bytes);
      expect(recorder.events).toEqual(events);
      expect(recorder.decoder.isBetweenFrames).toBe(true);
    });

    it("decodes across every split point", () => {
      for (const at of cutsOf(bytes.length)) {
        const recorder = new Recorder(role).push(bytes.subarray(0, at)).push(bytes.subarray(at));
        expect(recorder.events, `split at ${at}`).toEqual(events);
      }
    });

    it("decodes byte by byte", () => {
      const recorder = new Recorder(role);
      for (let at = 0; at < bytes.length; at++) recorder.push(bytes.subarray(at, at + 1));
      expect(recorder.events).toEqual(events);
    });

    it("waits when truncated", () => {
      for (const length of cutsOf(bytes.length)) {
        const recorder = new Recorder(role).push(bytes.subarray(0, length));
        if (length < bytes.length)
          expect(recorder.events.length, `${length} bytes`).toBeLessThan(events.length);
        expect(events.slice(0, recorder.events.length)).toEqual(recorder.events);
      }
    });

    it("decodes at every alignment in memory", () => {
      for (let shift = 0; shift < 8; shift++) {
        const memory = new Uint8Array(bytes.length + shift);
        memory.set(bytes, shift);
        const recorder = new Recorder(role);
        recorder.decoder.push(memory.subarray(shift));
        expect(recorder.events, `shift ${shift}`).toEqual(events);
      }
    });

    it("meets its limits", () => {
      expect(new Recorder(role, meets).push(bytes).events).toEqual(events);
    });

    for (const [limit, value] of Object.entries(meets) as [keyof WebSocketLimits, number][]) {
      it(`is refused when ${limit} is one less`, () => {
        const last = new Recorder(role, { [limit]: value - 1 }).push(bytes).events.at(-1);
        expect(last).toEqual({ type: "refused", closeCode: limit === "maxFragments" ? 1008 : 1009 });
      });
    }
  });
}

describe("WebSocketFrameDecoder refuses", () => {
  it.each(refusals)("$name", ({ role, wire, closeCode }) => {
    const bytes = bytesOf(wire);
    const refused = { type: "refused", closeCode };
    expect(new Recorder(role).push(bytes).events.at(-1)).toEqual(refused);

    for (let at = 0; at <= bytes.length; at++) {
      const recorder = new Recorder(role).push(bytes.subarray(0, at)).push(bytes.subarray(at));
      expect(recorder.events.at(-1), `split at ${at}`).toEqual(refused);
    }
  });
});
