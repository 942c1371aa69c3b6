import { describe, expect, it } from "vitest";
import {
  defaultSpdyLimits,
  FrameDecoder,
  FrameEncoder,
  type FrameHandler,
  type SpdyLimits,
} from "../../../../protocols/spdy/index.ts";
import { naiveDecode } from "../../../support/naive-spdy.ts";
import { dataFrame, type SeenFrame } from "../../../support/scripted-spdy-peer.ts";
import { vectors } from "./vectors.ts";

/** Collects frames; the parts of a DATA frame are joined, for how it is split is the chunks' business. */
class Collector implements FrameHandler {
  readonly frames: SeenFrame[] = [];
  #isInside = false;
  onData(streamId: number, part: Uint8Array, fin: boolean): void {
    const text = new TextDecoder().decode(part);
    const last = this.frames.at(-1);
    if (this.#isInside && last?.type === "DATA" && last.streamId === streamId && !last.fin) {
      last.text += text;
      last.fin = fin;
    } else this.frames.push({ type: "DATA", streamId, text, fin });
    this.#isInside = !fin;
  }
  onControl(frame: SeenFrame): void {
    this.frames.push(frame);
    this.#isInside = false;
  }
}

function decode(chunks: readonly Uint8Array[], limits: SpdyLimits = defaultSpdyLimits) {
  const collector = new Collector();
  const decoder = new FrameDecoder(collector, limits);
  for (const chunk of chunks) decoder.push(chunk);
  return { frames: collector.frames, isBetweenFrames: decoder.isBetweenFrames };
}

function payloadBytesOf(bytes: Uint8Array): number {
  return ((bytes[5] as number) << 16) | ((bytes[6] as number) << 8) | (bytes[7] as number);
}

for (const { name, wire, frames, isEncodedSo } of vectors) {
  describe(`frames on the wire: ${name}`, () => {
    const bytes = Uint8Array.from(Buffer.from(wire.replaceAll(" ", ""), "hex"));

    it("decodes whole", () => {
      expect(decode([bytes])).toEqual({ frames, isBetweenFrames: true });
    });

    it("decodes split at every byte, and byte by byte", () => {
      for (let at = 1; at < bytes.length; at++) {
        const split = decode([bytes.slice(0, at), bytes.slice(at)]);
        expect(split, `split at ${at}`).toEqual({ frames, isBetweenFrames: true });
      }
      expect(decode([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual({
        frames,
        isBetweenFrames: true,
      });
    });

    it("waits when truncated at any byte", () => {
      const ends = new Set<number>();
      for (let end = 0; end < bytes.length; end += 8 + payloadBytesOf(bytes.subarray(end))) ends.add(end);
      for (let length = 0; length < bytes.length; length++) {
        const truncated = decode([bytes.slice(0, length)]);
        expect(truncated.isBetweenFrames, `${length} bytes`).toBe(ends.has(length));
        const whole = truncated.frames.filter((frame) => frame.type !== "DATA" || frame.fin);
        expect(frames.slice(0, whole.length), `${length} bytes`).toEqual(whole);
      }
    });

    it("is refused by a limit one byte below its payload, not by one that fits", () => {
      const payloads: number[] = [];
      for (let at = 0; at < bytes.length; at += 8 + payloadBytesOf(bytes.subarray(at))) {
        payloads.push(payloadBytesOf(bytes.subarray(at)));
      }
      const largest = Math.max(...payloads);
      const limited = (payload: number) => ({
        ...defaultSpdyLimits,
        maxControlFrameBytes: payload,
        maxDataFrameBytes: payload,
      });
      expect(decode([bytes], limited(largest)).frames).toEqual(frames);
      if (largest > 0) {
        expect(() => decode([bytes], limited(largest - 1))).toThrow(
          expect.objectContaining({ code: "frame-too-large" }),
        );
      }
    });

    it("means the same to a naive decoder", async () => {
      const spoken = (await naiveDecode(bytes)).filter(
        (frame) => frame.type !== "DATA" || frame.text !== "" || frame.fin,
      );
      // Reserved bits are the naive one's blind spot.
      if (name !== "RST_STREAM with flags, which are ignored") expect(spoken).toEqual(frames);
    });

    if (isEncodedSo) {
      it("is what the encoder writes", () => {
        const encoder = new FrameEncoder();
        const encoded = frames.map((frame) =>
          frame.type === "DATA" ? dataFrame(frame.streamId, frame.text, frame.fin) : encoder.encode(frame),
        );
        expect(Buffer.concat(encoded).toString("hex")).toBe(Buffer.from(bytes).toString("hex"));
      });
    }

    it("survives the encoder and the decoder", () => {
      const encoder = new FrameEncoder();
      const encoded = frames.map((frame) =>
        frame.type === "DATA" ? dataFrame(frame.streamId, frame.text, frame.fin) : encoder.encode(frame),
      );
      expect(decode(encoded).frames).toEqual(frames);
    });
  });
}
