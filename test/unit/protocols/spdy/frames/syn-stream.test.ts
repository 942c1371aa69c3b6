import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeSynStream, encodeSynStream } from "../../../../../protocols/spdy/frames/syn-stream.ts";

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
const bytesOf = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const malformed = (message: string) => expect.objectContaining({ code: "malformed-frame", message });
const ids = fc.integer({ min: 1, max: 0x7fff_ffff });

describe("SYN_STREAM", () => {
  const headers = new Map([["streamtype", "stdin"]]);

  it("is two streams, a priority in the upper bits, and a header block", () => {
    const rest = { associatedStreamId: 2, priority: 7, fin: true, unidirectional: true, headers };
    expect(hexOf(encodeSynStream({ type: "SYN_STREAM", streamId: 1, ...rest }, bytesOf("aa")))).toBe(
      "800300010300000b0000000100000002e000aa",
    );
  });

  it("is read back", () => {
    const flag = fc.boolean();
    fc.assert(
      fc.property(
        ids,
        ids,
        fc.nat(7),
        flag,
        flag,
        (streamId, associatedStreamId, priority, fin, unidirectional) => {
          const frame = {
            type: "SYN_STREAM",
            streamId,
            associatedStreamId,
            priority,
            fin,
            unidirectional,
            headers,
          } as const;
          const bytes = encodeSynStream(frame, new Uint8Array(0));
          expect(decodeSynStream(bytes[4] ?? 0, bytes.subarray(8), headers)).toEqual(frame);
        },
      ),
    );
  });

  it("ignores reserved bits and the slot, and names a stream", () => {
    const frame = decodeSynStream(0, bytesOf("80000001800000001fff"), headers);
    expect(frame).toMatchObject({ streamId: 1, associatedStreamId: 0, priority: 0 });
    expect(() => decodeSynStream(0, new Uint8Array(10), headers)).toThrow(
      malformed("SYN_STREAM for stream 0"),
    );
  });
});
