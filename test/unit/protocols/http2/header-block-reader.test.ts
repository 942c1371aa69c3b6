import { describe, expect, it } from "vitest";
import { HeaderBlockReader, tooManyHeaders } from "../../../../protocols/http2/header-block-reader.ts";
import { encodeHeaderBlock } from "../../../../protocols/http2/hpack/header-encoder.ts";
import { FLAGS, FRAME } from "../../../../protocols/http2/limits.ts";

const BLOCK = encodeHeaderBlock([
  [":status", "200"],
  ["name", "value"],
]);
const FIELDS = ":status=200 name=value";
const PROTOCOL = expect.objectContaining({ fault: "connection", code: 1 });
const TOO_LARGE = expect.objectContaining({ fault: "header-list-too-large", code: 11 });

function reader({ maxHeaderListBytes = 1_000, maxContinuationFrames = 3 } = {}) {
  const blocks: string[] = [];
  const limits = { maxFrameBytes: 16_384, maxHeaderListBytes, maxContinuationFrames };
  const headers = new HeaderBlockReader(limits, (id, isEnd, entries) =>
    blocks.push(`${id} ${isEnd} ${entries.map((entry) => entry.join("=")).join(" ")}`),
  );
  return { headers, blocks };
}

describe("a header block", () => {
  it("may be in two frames, cut anywhere; the first says whether the stream ends", () => {
    for (let cut = 0; cut <= BLOCK.length; cut += 1) {
      const { headers, blocks } = reader();
      headers.onHeaders(FLAGS.END_STREAM, 5, BLOCK.slice(0, cut));
      expect(blocks).toEqual([]);
      headers.onContinuation(FLAGS.END_HEADERS, BLOCK.slice(cut));
      expect(blocks).toEqual([`5 true ${FIELDS}`]);
    }
  });

  it.each([
    ["alone", 0, [], []],
    ["with a priority", FLAGS.PRIORITY, [0, 0, 0, 0, 9], []],
    ["padded", FLAGS.PADDED, [2], [0, 0]],
    ["padded with nothing", FLAGS.PADDED, [0], []],
    ["padded, with a priority", FLAGS.PADDED | FLAGS.PRIORITY, [1, 0, 0, 0, 0, 9], [0]],
  ])("in one frame: %s", (_name, flags, before, behind) => {
    const { headers, blocks } = reader();
    headers.onHeaders(flags | FLAGS.END_HEADERS, 1, Uint8Array.of(...before, ...BLOCK, ...behind));
    expect(blocks).toEqual([`1 false ${FIELDS}`]);
  });

  it.each([
    ["padding longer than the frame", FLAGS.PADDED, [9, 1]],
    ["padding without a length", FLAGS.PADDED, []],
    ["a priority that is cut off", FLAGS.PRIORITY, [0, 0, 0, 0]],
    ["padding that leaves no room for the priority", FLAGS.PADDED | FLAGS.PRIORITY, [2, 0, 0, 0, 0, 9, 0]],
  ])("is refused for %s", (_name, flags, payload) => {
    const { headers } = reader();
    expect(() => headers.onHeaders(flags | FLAGS.END_HEADERS, 1, Uint8Array.from(payload))).toThrow(PROTOCOL);
  });

  it("keeps one table for all streams", () => {
    const { headers, blocks } = reader();
    const added = Uint8Array.of(0x40, 1, 0x61, 1, 0x62);
    headers.onHeaders(FLAGS.END_HEADERS, 1, added);
    headers.onHeaders(FLAGS.END_HEADERS, 3, Uint8Array.of(0xbe));
    expect(blocks).toEqual(["1 false a=b", "3 false a=b"]);
  });
});

describe("the order of frames", () => {
  it("is free between blocks, except for a CONTINUATION", () => {
    const { headers } = reader();
    headers.checkOrder(FRAME.DATA, 1);
    headers.checkOrder(FRAME.HEADERS, 1);
    expect(() => headers.checkOrder(FRAME.CONTINUATION, 1)).toThrow(PROTOCOL);
  });

  it("allows nothing but the stream's CONTINUATION within a block", () => {
    const { headers } = reader();
    headers.onHeaders(0, 1, BLOCK);
    headers.checkOrder(FRAME.CONTINUATION, 1);
    expect(() => headers.checkOrder(FRAME.CONTINUATION, 3)).toThrow(PROTOCOL);
    expect(() => headers.checkOrder(FRAME.PING, 0)).toThrow(PROTOCOL);
    expect(() => headers.checkOrder(FRAME.HEADERS, 1)).toThrow(PROTOCOL);
    headers.onContinuation(FLAGS.END_HEADERS, new Uint8Array(0));
    headers.checkOrder(FRAME.PING, 0);
  });
});

describe("bounds", () => {
  it("CONTINUATION frames: as many as allowed, also empty ones, and no more", () => {
    const { headers, blocks } = reader({ maxContinuationFrames: 2 });
    const push = (count: number): void => {
      headers.onHeaders(0, 1, BLOCK);
      for (let index = 1; index < count; index += 1) headers.onContinuation(0, new Uint8Array(0));
      headers.onContinuation(FLAGS.END_HEADERS, new Uint8Array(0));
    };
    push(2);
    push(2);
    expect(blocks).toHaveLength(2);
    expect(() => push(3)).toThrow(TOO_LARGE);
  });

  it("bytes on the wire, before they are kept, and fields as they are counted", () => {
    const fields = 42 + 41;
    const whole = reader({ maxHeaderListBytes: fields });
    whole.headers.onHeaders(0, 1, BLOCK.slice(0, 1));
    whole.headers.onContinuation(FLAGS.END_HEADERS, BLOCK.slice(1));
    expect(whole.blocks).toHaveLength(1);
    expect(() =>
      reader({ maxHeaderListBytes: fields - 1 }).headers.onHeaders(FLAGS.END_HEADERS, 1, BLOCK),
    ).toThrow(TOO_LARGE);
    const { headers } = reader({ maxHeaderListBytes: 20 });
    headers.onHeaders(0, 1, new Uint8Array(10));
    headers.onContinuation(0, new Uint8Array(10));
    expect(() => headers.onContinuation(0, new Uint8Array(1))).toThrow(TOO_LARGE);
    expect(tooManyHeaders()).toEqual(TOO_LARGE);
  });
});
