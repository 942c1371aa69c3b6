import { describe, expect, it } from "vitest";
import type { ProtocolErrorCode } from "../../../../protocols/protocol-error.ts";
import {
  type ControlFrame,
  defaultSpdyLimits,
  FrameDecoder,
  FrameEncoder,
} from "../../../../protocols/spdy/index.ts";
import { dataFrame, synStream } from "../../../support/scripted-spdy-peer.ts";

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"));
}

function recordingDecoder(limits = {}, headerBlocks?: "inflate" | "skip") {
  const parts: { part: Uint8Array; fin: boolean }[] = [];
  const frames: ControlFrame[] = [];
  const decoder = new FrameDecoder(
    { onData: (_streamId, part, fin) => parts.push({ part, fin }), onControl: (frame) => frames.push(frame) },
    { ...defaultSpdyLimits, ...limits },
    headerBlocks,
  );
  return { decoder, parts, frames };
}

const zlibHeader = "78f9e3c6a7c2";
const refused: readonly { name: string; wire: string; code: ProtocolErrorCode }[] = [
  {
    name: "TestNoZeroStreamId: SYN_STREAM",
    wire: `800300010000001a 00000000 00000000 0000 ${zlibHeader} 02a6230600000000ffff`,
    code: "malformed-frame",
  },
  {
    name: "TestNoZeroStreamId: SYN_REPLY",
    wire: `8003000200000014 00000000 ${zlibHeader} 02a6230600000000ffff`,
    code: "malformed-frame",
  },
  {
    name: "TestNoZeroStreamId: HEADERS",
    wire: `8003000800000014 00000000 ${zlibHeader} 02a6230600000000ffff`,
    code: "malformed-frame",
  },
  {
    name: "TestNoZeroStreamId: RST_STREAM",
    wire: "8003000300000008 00000000 00000001",
    code: "malformed-frame",
  },
  { name: "TestNoZeroStreamId: DATA", wire: "00000000 00000001", code: "malformed-frame" },
  { name: "TestNoZeroStreamId: empty DATA", wire: "00000000 00000000", code: "malformed-frame" },
  { name: "RST_STREAM with status 0", wire: "8003000300000008 00000001 00000000", code: "malformed-frame" },
  { name: "RST_STREAM of 7 bytes", wire: "8003000300000007", code: "malformed-frame" },
  { name: "RST_STREAM of 9 bytes", wire: "8003000300000009", code: "malformed-frame" },
  { name: "TestCreateParsePing: id 0", wire: "8003000600000004 00000000", code: "malformed-frame" },
  { name: "TestCreateParsePing: flags", wire: "8003000601000004 00000001", code: "malformed-frame" },
  { name: "PING of 8 bytes", wire: "8003000600000008", code: "malformed-frame" },
  {
    name: "TestCreateParseGoAway: flags",
    wire: "8003000701000008 00000000 00000000",
    code: "malformed-frame",
  },
  {
    name: "TestCreateParseGoAway: 4 bytes, as in SPDY/2",
    wire: "8003000700000004 00000000",
    code: "malformed-frame",
  },
  {
    name: "TestCreateParseWindowUpdateFrame: flags",
    wire: "8003000901000008 00000001 00000001",
    code: "malformed-frame",
  },
  { name: "TestCreateParseWindowUpdateFrame: 12 bytes", wire: "800300090000000c", code: "malformed-frame" },
  { name: "NOOP", wire: "8003000500000000", code: "malformed-frame" },
  { name: "CREDENTIAL", wire: "8003000a00000008", code: "malformed-frame" },
  { name: "a type of two bytes", wire: "8003010100000008", code: "malformed-frame" },
  { name: "SYN_STREAM without room for its fields", wire: "8003000100000009", code: "malformed-frame" },
  { name: "SYN_REPLY without room for its id", wire: "8003000200000003", code: "malformed-frame" },
  {
    name: "SYN_STREAM without a header block",
    wire: "800300010000000a 00000001 00000000 0000",
    code: "malformed-header-block",
  },
  { name: "SETTINGS without a count", wire: "8003000400000000", code: "malformed-frame" },
  {
    name: "TestReadFrameRejectsSettingsLengthMismatch: entries that are not there",
    wire: "800300040000000c 00000002 0000000000000000",
    code: "malformed-frame",
  },
  {
    name: "SETTINGS with bytes after its entries",
    wire: "800300040000000c 00000000 0000000000000000",
    code: "malformed-frame",
  },
  {
    name: "CVE-2026-35469: SETTINGS that count to 2^32 - 1",
    wire: "800300040000000c ffffffff 0000000000000000",
    code: "too-many-settings",
  },
  {
    name: "TestReadFrameRejectsOversizedControlFrame: by its header alone",
    wire: "8003000100ffffff",
    code: "frame-too-large",
  },
];

describe("FrameDecoder refuses", () => {
  for (const { name, wire, code } of refused) {
    it(name, () => {
      const bytes = bytesOf(wire);
      expect(() => recordingDecoder().decoder.push(bytes)).toThrow(
        expect.objectContaining({ name: "ProtocolError", code }),
      );
      const byByte = recordingDecoder().decoder;
      expect(() => {
        for (const byte of bytes) byByte.push(Uint8Array.of(byte));
      }).toThrow(expect.objectContaining({ code }));
    });
  }

  it("one SETTINGS entry more than its limit", () => {
    const entries = [1, 2, 3].map((id) => ({ flags: 0, id, value: 1 }));
    const wire = new FrameEncoder().encode({ type: "SETTINGS", entries });
    expect(() => recordingDecoder({ maxSettingsEntries: 2 }).decoder.push(wire)).toThrow(
      /SETTINGS with 3 entries/,
    );
    const { decoder, frames } = recordingDecoder({ maxSettingsEntries: 3 });
    decoder.push(wire);
    expect(frames).toEqual([{ type: "SETTINGS", entries }]);
  });

  for (const name of ["connection", "host", "keep-alive", "proxy-connection", "transfer-encoding"]) {
    it(`SYN_STREAM with the header ${name}, as spdystream does`, () => {
      const wire = new FrameEncoder().encode(synStream(1, { headers: new Map([[name, "x"]]) }));
      expect(() => recordingDecoder().decoder.push(wire)).toThrow(
        expect.objectContaining({ code: "malformed-header-block" }),
      );
    });
  }

  it("everything after a refusal, silently", () => {
    const { decoder, frames } = recordingDecoder();
    expect(() => decoder.push(bytesOf("8003000500000000"))).toThrow();
    decoder.push(bytesOf("8003000600000004 00000001"));
    expect(frames).toEqual([]);
  });
});

describe("FrameDecoder", () => {
  it("passes DATA on as views of the chunk, uncopied, as it comes", () => {
    const { decoder, parts } = recordingDecoder();
    const wire = dataFrame(1, "abcdef", true);
    const first = wire.slice(0, 10);
    const second = wire.slice(10);
    decoder.push(first);
    expect(parts).toHaveLength(1);
    decoder.push(second);
    expect(parts.map(({ part, fin }) => [new TextDecoder().decode(part), fin])).toEqual([
      ["ab", false],
      ["cdef", true],
    ]);
    expect(parts[0]?.part.buffer).toBe(first.buffer);
    expect(parts[1]?.part.buffer).toBe(second.buffer);
  });

  it("gives a view of a Buffer as a Buffer's memory too", () => {
    const { decoder, parts } = recordingDecoder();
    const wire = Buffer.from(dataFrame(1, "abc"));
    decoder.push(wire);
    expect(parts[0]?.part.buffer).toBe(wire.buffer);
  });

  it("keeps nothing of a chunk: a control frame that it cut off survives the chunk's reuse", () => {
    const { decoder, frames } = recordingDecoder();
    const encoder = new FrameEncoder();
    const wires = [1, 3, 5].map((id) =>
      encoder.encode(synStream(id, { headers: new Map([["name", `value ${id}`]]) })),
    );
    for (const wire of wires) {
      for (const part of [wire.slice(0, 5), wire.slice(5, 20), wire.slice(20)]) {
        decoder.push(part);
        part.fill(0xff);
      }
    }
    expect(frames.map((frame) => frame.type === "SYN_STREAM" && frame.headers.get("name"))).toEqual([
      "value 1",
      "value 3",
      "value 5",
    ]);
  });

  it("ignores what follows a stop(), in the same chunk too", () => {
    const frames: ControlFrame[] = [];
    const decoder: FrameDecoder = new FrameDecoder(
      {
        onData() {},
        onControl(frame) {
          frames.push(frame);
          decoder.stop();
        },
      },
      defaultSpdyLimits,
    );
    decoder.push(bytesOf("8003000600000004 00000001 8003000600000004 00000003 ffffffffffff"));
    decoder.push(bytesOf("8003000600000004 00000005"));
    expect(frames).toEqual([{ type: "PING", id: 1 }]);
  });

  describe("told to skip header blocks", () => {
    it("takes replies without looking into their block", () => {
      const { decoder, frames } = recordingDecoder({}, "skip");
      decoder.push(bytesOf("8003000201000008 00000001 deadbeef 8003000800000005 00000003 99"));
      expect(frames).toEqual([
        { type: "SYN_REPLY", streamId: 1, fin: true, headers: new Map() },
        { type: "HEADERS", streamId: 3, fin: false, headers: new Map() },
      ]);
    });

    it("refuses a SYN_STREAM, whose headers it could not read", () => {
      const { decoder } = recordingDecoder({}, "skip");
      expect(() => decoder.push(new FrameEncoder().encode(synStream(2)))).toThrow(
        expect.objectContaining({ code: "unsupported" }),
      );
    });
  });
});
