import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  ABORT,
  encodeAbort,
  MAX_HEADER_BYTES,
  ResumeFrameDecoder,
  writeAck,
  writeDataHeader,
  writeFin,
} from "../../../../protocols/resume/frames.ts";

type Write = (target: Uint8Array) => number;
function written(write: Write): Uint8Array {
  const target = new Uint8Array(MAX_HEADER_BYTES + 1).fill(0xee);
  const bytes = write(target);
  expect(target[bytes]).toBe(0xee);
  return target.slice(0, bytes);
}
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));

/** A decoder, and what it says; parts of data that follow each other are one. */
function recorder() {
  const events: string[] = [];
  let end = -1;
  const decoder = new ResumeFrameDecoder({
    onData: (offset, part) => {
      expect(part.length).toBeGreaterThan(0);
      const text = Buffer.from(part).toString("hex");
      if (offset === end) events.push(`${events.pop()}${text}`);
      else events.push(`data ${offset} ${text}`);
      end = offset + part.length;
    },
    onFin: (offset) => events.push(`fin ${offset}`),
    onAck: (received, free) => events.push(`ack ${received} ${free}`),
    onAbort: (code, reason) => events.push(`abort ${code} ${reason}`),
  });
  return { decoder, events };
}

function decode(message: Uint8Array, cut: number): string[] {
  const { decoder, events } = recorder();
  decoder.push(message.slice(0, cut), true, false);
  decoder.push(message.slice(cut), false, true);
  return events;
}

const OFFSET = 2 ** 40 + 5;
const frames: [string, Uint8Array, string, string[]][] = [
  [
    "DATA",
    Uint8Array.of(...written((target) => writeDataHeader(target, OFFSET, 3, 0xffff_ffff)), 0xaa, 0xbb),
    "0100000100000000050000000000000003ffffffffaabb",
    ["ack 3 4294967295", `data ${OFFSET} aabb`],
  ],
  [
    "FIN",
    written((target) => writeFin(target, 7, OFFSET, 1)),
    "020000000000000007000001000000000500000001",
    [`ack ${OFFSET} 1`, "fin 7"],
  ],
  [
    "ACK",
    written((target) => writeAck(target, 2 ** 53 - 1, 0)),
    "03001fffffffffffff00000000",
    [`ack ${2 ** 53 - 1} 0`],
  ],
  ["ABORT", encodeAbort(ABORT.SHUTDOWN, "bye"), "0402627965", ["abort 2 bye"]],
];

describe.each(frames)("a frame %s", (_name, bytes, hex, events) => {
  it("is written as the format says", () => {
    expect(hexOf(bytes)).toBe(hex);
  });

  it("is read back, wherever it is cut", () => {
    for (let cut = 0; cut <= bytes.length; cut += 1) expect(decode(bytes, cut)).toEqual(events);
  });

  it("is refused while its header is not whole", () => {
    const headerBytes = bytes[0] === 4 ? 2 : Math.min(bytes.length, MAX_HEADER_BYTES);
    for (let length = 0; length < headerBytes; length += 1) {
      const message = length === 0 ? "a frame is empty" : "a frame is too short";
      expect(() => decode(bytes.slice(0, length), 0)).toThrow(message);
    }
  });

  it("is forgotten by a reset, which a lost connection causes", () => {
    for (let cut = 0; cut < bytes.length; cut += 1) {
      const { decoder, events: told } = recorder();
      decoder.push(bytes.slice(0, cut), true, false);
      decoder.reset();
      const before = told.length;
      decoder.push(bytesOf("0400"), false, true);
      expect(told.slice(before)).toEqual(["abort 0 "]);
    }
  });
});

describe("frames are refused for", () => {
  it.each([
    ["an unknown type", "0500", "there is no frame type 5"],
    ["type 0", "00", "there is no frame type 0"],
    ["an ACK that is too long", `03${"00".repeat(12)}00`, "a frame is too long"],
    ["a FIN with payload", `02${"00".repeat(20)}00`, "a frame is too long"],
    ["a reason past 123 bytes", `0400${"61".repeat(124)}`, "a frame is too long"],
    ["an offset of 2^53", `010020000000000000${"00".repeat(12)}61`, "an offset is beyond 2^53"],
    ["a received of 2^53", `030020000000000000${"00".repeat(4)}`, "an offset is beyond 2^53"],
    ["payload that goes past 2^53", `01001fffffffffffff${"00".repeat(12)}61`, "an offset is beyond 2^53"],
  ])("%s, wherever they are cut", (_name, hex, message) => {
    const bytes = bytesOf(hex);
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      expect(() => decode(bytes, cut)).toThrow(
        expect.objectContaining({ name: "ProtocolError", code: "malformed-frame", message }),
      );
    }
  });

  it("no reason of 123 bytes, and a longer one is cut between characters", () => {
    expect(decode(encodeAbort(ABORT.ENDED, "a".repeat(123)), 9)).toEqual([`abort 0 ${"a".repeat(123)}`]);
    expect(decode(encodeAbort(ABORT.ENDED, "a".repeat(200)), 9)).toEqual([`abort 0 ${"a".repeat(123)}`]);
    expect(decode(encodeAbort(ABORT.PROTOCOL_ERROR, "€".repeat(42)), 9)).toEqual([
      `abort 1 ${"€".repeat(41)}`,
    ]);
  });
});

describe("any bytes", () => {
  it("are frames, or malformed", () => {
    const type = fc.constantFrom(1, 2, 3, 4, 9);
    fc.assert(
      fc.property(type, fc.uint8Array({ maxLength: 40 }), fc.nat(41), (first, rest, cut) => {
        try {
          expect(decode(Uint8Array.of(first, ...rest), cut).length).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toMatchObject({ name: "ProtocolError", code: "malformed-frame" });
        }
      }),
    );
  });
});
