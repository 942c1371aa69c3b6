import { describe, expect, it } from "vitest";
import { FrameHeaderReader } from "../../../../protocols/websocket/frame-header-reader.ts";
import { bytesOf } from "../../../support/protocols/websocket/recorder.ts";

const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });

describe("a frame's header", () => {
  // The headers of RFC 6455 section 5.7.
  it.each([
    ["81 05", false, { opcode: 1, isFinal: true, payloadBytes: 5, maskKey: 0 }],
    ["81 85 37fa213d", true, { opcode: 1, isFinal: true, payloadBytes: 5, maskKey: 0x37fa_213d }],
    ["01 03", false, { opcode: 1, isFinal: false, payloadBytes: 3, maskKey: 0 }],
    ["89 05", false, { opcode: 9, isFinal: true, payloadBytes: 5, maskKey: 0 }],
    ["8a 85 ffffffff", true, { opcode: 10, isFinal: true, payloadBytes: 5, maskKey: 0xffff_ffff }],
    ["82 7e 0100", false, { opcode: 2, isFinal: true, payloadBytes: 256, maskKey: 0 }],
    ["82 7f 0000000000010000", false, { opcode: 2, isFinal: true, payloadBytes: 65_536, maskKey: 0 }],
    ["82 ff 0000000000010000 00000001", true, { opcode: 2, isFinal: true, payloadBytes: 65_536, maskKey: 1 }],
  ] as const)("%s is read wherever it is cut, and no further", (hex, expectsMask, fields) => {
    const header = bytesOf(hex);
    for (let cut = 0; cut <= header.length; cut += 1) {
      const reader = new FrameHeaderReader(expectsMask);
      // The second round finds nothing left of the first.
      for (let round = 0; round < 2; round += 1) {
        expect(reader.isComplete).toBe(true);
        if (cut < header.length) {
          expect(reader.read(header.subarray(0, cut), 0, false)).toBe(cut);
          expect(reader.isComplete).toBe(false);
          const rest = Uint8Array.of(0xee, ...header.subarray(cut), 0xee);
          expect(reader.read(rest, 1, false)).toBe(rest.length - 1);
        } else expect(reader.read(Uint8Array.of(...header, 0xee), 0, false)).toBe(cut);
        expect(reader).toMatchObject(fields);
      }
    }
  });

  it("is refused by its length before its mask key is there", () => {
    const reader = new FrameHeaderReader(true, () => {
      throw new Error(`${reader.payloadBytes} bytes`);
    });
    expect(() => reader.read(bytesOf("82 fe 0101"), 0, false)).toThrow("257 bytes");
    const short = new FrameHeaderReader(true, () => {
      throw new Error("short");
    });
    expect(() => short.read(bytesOf("82 81"), 0, false)).toThrow("short");
  });
});

describe("two bytes are refused for", () => {
  it.each([
    ["a reserved bit", "c1 00", false, "a reserved bit is set"],
    ["a reserved data opcode", "83 00", false, "opcode 3 is reserved"],
    ["a reserved control opcode", "8b 00", false, "opcode 11 is reserved"],
    ["a control frame in parts", "09 00", false, "a control frame is fragmented"],
    ["a control frame of 126 bytes", "89 7e", false, "a control frame is longer than 125 bytes"],
    ["half a close code", "88 01", false, "a Close frame has a body of one byte"],
    ["a continuation of nothing", "80 00", false, "a continuation frame without a message to continue"],
    ["a message within another", "82 00", true, "a new message starts before the last one ended"],
    ["a mask of a server", "82 80", false, "a server's frame is masked"],
  ])("%s", (_name, hex, isInMessage, message) => {
    expect(() => new FrameHeaderReader(false).read(bytesOf(hex), 0, isInMessage)).toThrow(malformed(message));
  });

  it("no mask of a client; control frames may come within a message", () => {
    expect(() => new FrameHeaderReader(true).read(bytesOf("82 00"), 0, false)).toThrow(
      malformed("a client's frame is not masked"),
    );
    const reader = new FrameHeaderReader(false);
    expect(reader.read(bytesOf("89 7d"), 0, true)).toBe(2);
    expect(reader.read(bytesOf("80 00"), 0, true)).toBe(2);
  });
});
