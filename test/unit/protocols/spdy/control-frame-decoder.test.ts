import { describe, expect, it } from "vitest";
import { defaultSpdyLimits, FRAME_TYPE } from "../../../../protocols/spdy/constants.ts";
import { ControlFrameDecoder } from "../../../../protocols/spdy/frame-decoder.ts";
import { FrameEncoder } from "../../../../protocols/spdy/frame-encoder.ts";

const synStream = (headers: ReadonlyMap<string, string>) =>
  ({
    type: "SYN_STREAM",
    streamId: 1,
    associatedStreamId: 0,
    priority: 0,
    fin: false,
    unidirectional: false,
    headers,
  }) as const;
const payloadOf = (headers: ReadonlyMap<string, string>): Uint8Array =>
  new FrameEncoder().encode(synStream(headers)).subarray(8);
const inflating = (limits = defaultSpdyLimits) => new ControlFrameDecoder(limits, "inflate");

describe("ControlFrameDecoder", () => {
  it("inflates header blocks in their order", () => {
    const encoder = new FrameEncoder();
    const decoder = inflating();
    for (const type of ["error", "stdin"]) {
      const frame = synStream(new Map([["streamtype", type]]));
      const payload = encoder.encode(frame).subarray(8);
      expect(decoder.decode(FRAME_TYPE.SYN_STREAM, 0, payload)).toEqual(frame);
    }
  });

  it.each([
    "connection",
    "host",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
  ])("refuses a stream with the header %s", (name) => {
    const payload = payloadOf(new Map([[name, "x"]]));
    expect(() => inflating().decode(FRAME_TYPE.SYN_STREAM, 0, payload)).toThrow(
      expect.objectContaining({
        code: "malformed-header-block",
        message: `SYN_STREAM with the header ${name}`,
      }),
    );
  });

  it("skips header blocks of replies, and then takes no streams", () => {
    const decoder = new ControlFrameDecoder(defaultSpdyLimits, "skip");
    const reply = Uint8Array.of(0, 0, 0, 1, 0xde, 0xad);
    const headers = new Map();
    expect(decoder.decode(FRAME_TYPE.SYN_REPLY, 1, reply)).toEqual({
      type: "SYN_REPLY",
      streamId: 1,
      fin: true,
      headers,
    });
    expect(() => decoder.decode(FRAME_TYPE.SYN_STREAM, 0, payloadOf(headers))).toThrow(
      expect.objectContaining({ code: "unsupported" }),
    );
  });
});
