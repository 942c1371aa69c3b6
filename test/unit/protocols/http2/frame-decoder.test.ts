import { describe, expect, it } from "vitest";
import { encodeFrame, FRAME, FrameDecoder } from "../../../../protocols/http2/index.ts";
import { FLAGS } from "../../../../protocols/http2/limits.ts";

const MAX_BYTES = 16_384;

/** Everything that came out, payloads copied. */
function decoder() {
  const seen: string[] = [];
  const frames = new FrameDecoder(
    {
      onFrameStart: (type, flags, id, bytes) => seen.push(`start ${type} ${flags} ${id} ${bytes}`),
      onData: (id, part) => seen.push(`data ${id} ${Buffer.from(part).toString()}`),
      onDataEnd: (id, isEnd) => seen.push(`end ${id} ${isEnd}`),
      onFrame: (type, flags, id, payload) =>
        seen.push(`frame ${type} ${flags} ${id} ${Buffer.from(payload).toString("hex")}`),
    },
    MAX_BYTES,
  );
  return { frames, seen };
}

const text = (characters: string) => Uint8Array.from(Buffer.from(characters));
const padded = Uint8Array.of(3, ...text("abc"), 0, 0, 0);
const bytes = Buffer.concat([
  encodeFrame(FRAME.SETTINGS, 0, 0, new Uint8Array(0)),
  encodeFrame(FRAME.DATA, FLAGS.PADDED, 1, padded),
  encodeFrame(FRAME.PING, 0, 0, text("12345678")),
  encodeFrame(FRAME.DATA, 0, 1, new Uint8Array(0)),
  encodeFrame(200, 7, 5, text("unknown")),
  encodeFrame(FRAME.DATA, FLAGS.PADDED, 1, Uint8Array.of(0)),
  encodeFrame(FRAME.DATA, FLAGS.END_STREAM, 1, text("x")),
]);

describe("FrameDecoder", () => {
  it("tells frames, data without padding, and skips what it does not know", () => {
    const { frames, seen } = decoder();
    frames.push(bytes);
    expect(seen).toEqual([
      "start 4 0 0 0",
      "frame 4 0 0 ",
      "start 0 8 1 7",
      "data 1 abc",
      "end 1 false",
      "start 6 0 0 8",
      "frame 6 0 0 3132333435363738",
      "start 0 0 1 0",
      "end 1 false",
      "start 200 7 5 7",
      "start 0 8 1 1",
      "end 1 false",
      "start 0 1 1 1",
      "data 1 x",
      "end 1 true",
    ]);
    expect(frames.isBetweenFrames).toBe(true);
  });

  it("says the same wherever the bytes are cut", () => {
    const whole = decoder();
    whole.frames.push(bytes);
    const joined = (seen: string[]) => seen.join("|").replaceAll(/(?<=data 1 \w+)\|data 1 /g, "");
    for (let size = 1; size < bytes.length; size++) {
      const { frames, seen } = decoder();
      for (let at = 0; at < bytes.length; at += size) frames.push(bytes.subarray(at, at + size));
      expect(joined(seen)).toBe(joined(whole.seen));
    }
  });

  it("refuses a frame by its header, before any of it has come", () => {
    const { frames } = decoder();
    expect(() => frames.push(Uint8Array.of(0, 0x40, 1, 1, 0, 0, 0, 0, 1))).toThrow(
      expect.objectContaining({ fault: "frame-too-large", code: 6 }),
    );
    expect(() => decoder().frames.push(text("HTTP/1.1 400 Bad Request\r\n"))).toThrow(
      expect.objectContaining({ fault: "looks-like-http1" }),
    );
  });

  it.each([
    ["more than there is", Uint8Array.of(3, 1, 2)],
    ["no length", new Uint8Array(0)],
  ])("refuses padding: %s", (_, payload) => {
    expect(() => decoder().frames.push(encodeFrame(FRAME.DATA, FLAGS.PADDED, 1, payload))).toThrow(
      expect.objectContaining({ fault: "connection", code: 1 }),
    );
  });

  it("knows whether a frame is half", () => {
    const { frames } = decoder();
    frames.push(bytes.subarray(0, 12));
    expect(frames.isBetweenFrames).toBe(false);
  });
});
