import { describe, expect, it } from "vitest";
import {
  CLIENT_PREFACE_BYTES,
  concatenated,
  encodeFirstRequest,
  encodeFrame,
  encodeHeaders,
  encodeSettings,
  encodeWindowUpdate,
} from "../../../../protocols/http2/frame-encoder.ts";
import { FLAGS, FRAME } from "../../../../protocols/http2/limits.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const PREFACE = `${Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").toString("hex")}000006040000000000000200000000`;

/** Type, flags, stream and length of each frame. */
function framesIn(bytes: Uint8Array): number[][] {
  const buffer = Buffer.from(bytes);
  const frames: number[][] = [];
  for (let at = 0; at < buffer.length; at += 9 + buffer.readUIntBE(at, 3)) {
    frames.push([
      buffer.readUInt8(at + 3),
      buffer.readUInt8(at + 4),
      buffer.readUInt32BE(at + 5),
      buffer.readUIntBE(at, 3),
    ]);
  }
  return frames;
}

describe("frames as RFC 9113 draws them", () => {
  it.each([
    [
      "a frame",
      encodeFrame(FRAME.PING, FLAGS.ACK, 0, Uint8Array.from(Buffer.from("12345678"))),
      "0000080601000000003132333435363738",
    ],
    ["the largest stream", encodeFrame(FRAME.DATA, 0, 0x7fff_ffff, Uint8Array.of(1)), "00000100007fffffff01"],
    [
      "SETTINGS",
      encodeSettings([
        [4, 65_536],
        [2, 1],
      ]),
      "00000c040000000000000400010000000200000001",
    ],
    ["WINDOW_UPDATE", encodeWindowUpdate(5, 0x7fff_ffff), "0000040800000000057fffffff"],
    ["the preface, which disables pushes", CLIENT_PREFACE_BYTES, PREFACE],
  ])("%s", (_name, bytes, hex) => {
    expect(hexOf(bytes)).toBe(hex);
  });
});

describe("a header block", () => {
  const ENDS = FLAGS.END_HEADERS;

  it.each([
    [0, [[FRAME.HEADERS, ENDS, 3, 0]]],
    [16_384, [[FRAME.HEADERS, ENDS, 3, 16_384]]],
    [
      16_385,
      [
        [FRAME.HEADERS, 0, 3, 16_384],
        [FRAME.CONTINUATION, ENDS, 3, 1],
      ],
    ],
    [
      40_000,
      [
        [FRAME.HEADERS, 0, 3, 16_384],
        [FRAME.CONTINUATION, 0, 3, 16_384],
        [FRAME.CONTINUATION, ENDS, 3, 7_232],
      ],
    ],
  ])("of %i bytes is in frames of 16,384; the first ends the stream", (bytes, frames) => {
    const block = Uint8Array.from({ length: bytes }, (_, index) => index % 251);
    const encoded = encodeHeaders(3, block, false);
    expect(framesIn(encoded)).toEqual(frames);
    const payloads: Uint8Array[] = [];
    let at = 0;
    for (const [, , , length = 0] of frames) {
      payloads.push(encoded.subarray(at + 9, at + 9 + length));
      at += 9 + length;
    }
    expect(hexOf(concatenated(payloads))).toBe(hexOf(block));
    const [[type = 0, flags = 0, ...rest] = [], ...others] = frames;
    expect(framesIn(encodeHeaders(3, block, true))).toEqual([
      [type, flags | FLAGS.END_STREAM, ...rest],
      ...others,
    ]);
  });
});

describe("a first request", () => {
  const headers = encodeHeaders(1, Uint8Array.of(0x82), true);

  it("is the preface, its headers, and a body that ends the stream", () => {
    const body = Uint8Array.of(1, 2);
    expect(hexOf(encodeFirstRequest(headers))).toBe(PREFACE + hexOf(headers));
    expect(hexOf(encodeFirstRequest(headers, body))).toBe(
      `${PREFACE}${hexOf(headers)}0000020001000000010102`,
    );
  });
});
