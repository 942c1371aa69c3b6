import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultPeerSettings, withSettings } from "../../../../protocols/http2/peer-settings.ts";

function payload(...settings: [id: number, value: number][]): Uint8Array {
  const bytes = Buffer.alloc(6 * settings.length);
  for (const [index, [id, value]] of settings.entries()) {
    bytes.writeUInt16BE(id, 6 * index);
    bytes.writeUInt32BE(value, 6 * index + 2);
  }
  return Uint8Array.from(bytes);
}

describe("the server's settings", () => {
  it("begin with the protocol's defaults, which an empty frame keeps", () => {
    expect(withSettings(defaultPeerSettings, payload())).toEqual({
      initialWindowBytes: 65_535,
      maxConcurrentStreams: Number.POSITIVE_INFINITY,
    });
  });

  it("change what they name, the last value wins, and unknown ones are ignored", () => {
    const before = withSettings(defaultPeerSettings, payload([3, 100], [4, 1], [0xfff0, 7], [4, 2]));
    expect(before).toEqual({ initialWindowBytes: 2, maxConcurrentStreams: 100 });
    expect(withSettings(before, payload([3, 0]))).toEqual({ initialWindowBytes: 2, maxConcurrentStreams: 0 });
    expect(before.maxConcurrentStreams).toBe(100);
    // 0x0103 is not 3.
    expect(withSettings(before, payload([0x0103, 5]))).toEqual(before);
  });

  it.each([
    ["ENABLE_PUSH", 2, [0, 1], [2, 0xffff_ffff], 1],
    ["INITIAL_WINDOW_SIZE", 4, [0, 0x7fff_ffff], [0x8000_0000, 0xffff_ffff], 3],
    ["MAX_FRAME_SIZE", 5, [16_384, 0xff_ffff], [0, 16_383, 0x100_0000], 1],
  ])("%s has bounds", (_name, id, valid, invalid, code) => {
    for (const value of valid) withSettings(defaultPeerSettings, payload([id, value]));
    for (const value of invalid) {
      expect(() => withSettings(defaultPeerSettings, payload([id, value]))).toThrow(
        expect.objectContaining({ fault: "connection", code }),
      );
    }
  });

  it("are six bytes each", () => {
    for (let bytes = 0; bytes < 20; bytes += 1) {
      const act = () => withSettings(defaultPeerSettings, new Uint8Array(bytes));
      if (bytes % 6 === 0) expect(act()).toEqual(defaultPeerSettings);
      else expect(act).toThrow(expect.objectContaining({ fault: "connection", code: 6 }));
    }
  });

  it("any bytes are settings, or end the connection", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        try {
          expect(withSettings(defaultPeerSettings, bytes).initialWindowBytes).toBeLessThan(2 ** 31);
        } catch (error) {
          expect(error).toMatchObject({ name: "Http2Error", fault: "connection" });
        }
      }),
    );
  });
});
