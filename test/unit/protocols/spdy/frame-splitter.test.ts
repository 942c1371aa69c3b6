import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  defaultSpdyLimits,
  FrameDecoder,
  FrameEncoder,
  FrameSplitter,
  writeDataHeader,
} from "../../../../protocols/spdy/index.ts";

/** What a receiver understands: payload and FIN per stream, control frames by type, and whether it stands between frames. */
function understood(pieces: readonly Uint8Array[]) {
  const payload: Record<number, number[]> = {};
  const fins: number[] = [];
  const controls: string[] = [];
  const decoder = new FrameDecoder(
    {
      onData: (id, part, fin) => {
        payload[id] = [...(payload[id] ?? []), ...part];
        if (fin) fins.push(id);
      },
      onControl: (frame) => void controls.push(frame.type),
    },
    defaultSpdyLimits,
  );
  for (const piece of pieces) decoder.push(piece);
  return { payload, fins, controls, isBetweenFrames: decoder.isBetweenFrames };
}

function dataFrame(id: number, payload: Uint8Array, fin: boolean): Uint8Array {
  const frame = new Uint8Array(8 + payload.length);
  writeDataHeader(frame, 0, id, payload.length, fin);
  frame.set(payload, 8);
  return frame;
}

const encodeConversation = (
  steps: readonly { id: number; payload: Uint8Array; fin: boolean; isControl: boolean }[],
) => {
  const encoder = new FrameEncoder();
  return Buffer.concat(
    steps.map(({ id, payload, fin, isControl }) => {
      if (!isControl) return dataFrame(id, payload, fin);
      return fin
        ? encoder.encode({
            type: "SYN_REPLY",
            streamId: id,
            fin: false,
            headers: new Map([["a", `${payload.length}`]]),
          })
        : encoder.encode({ type: "PING", id });
    }),
  );
};

const step = fc.record({
  id: fc.integer({ min: 1, max: 9 }),
  payload: fc.uint8Array({ maxLength: 50 }),
  fin: fc.boolean(),
  isControl: fc.boolean(),
});

describe("FrameSplitter", () => {
  it("passes on the same conversation but for PINGs however it is cut, and stands between frames after every chunk", () => {
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 40 })),
        (steps, cuts) => {
          const wire = encodeConversation(steps);
          const expected = understood([Uint8Array.from(wire)]);
          const passed: Uint8Array[] = [];
          const pings: number[] = [];
          const splitter = new FrameSplitter(
            {
              onBytes: (bytes) => void passed.push(bytes.slice()),
              onPayload: () => {},
              onReply: () => {},
              onFinish: () => {},
              onGoAway: () => {},
              onPing: (id) => void pings.push(id),
            },
            defaultSpdyLimits.maxControlFrameBytes,
          );
          let offset = 0;
          for (const length of [...cuts, wire.length]) {
            splitter.push(Uint8Array.from(wire.subarray(offset, offset + length)));
            expect(understood(passed).isBetweenFrames).toBe(true);
            offset += length;
          }
          const controls = expected.controls.filter((type) => type !== "PING");
          expect(understood(passed)).toEqual({ ...expected, controls });
          expect(pings).toHaveLength(expected.controls.length - controls.length);
        },
      ),
    );
  });

  it("tells replies, payload and ends by stream, once whole", () => {
    const said: string[] = [];
    const splitter = new FrameSplitter(
      {
        onBytes: () => {},
        onPayload: (id, _bytes, start, end) => void said.push(`payload ${id} of ${end - start}`),
        onReply: (id) => void said.push(`reply ${id}`),
        onFinish: (id) => void said.push(`finish ${id}`),
        onGoAway: () => void said.push("goaway"),
        onPing: (id) => void said.push(`ping ${id}`),
      },
      1024,
    );
    const encoder = new FrameEncoder();
    splitter.push(encoder.encode({ type: "SYN_REPLY", streamId: 1, fin: false, headers: new Map() }));
    const frame = dataFrame(3, new Uint8Array(10), true);
    splitter.push(frame.slice(0, 12));
    splitter.push(frame.slice(12));
    splitter.push(encoder.encode({ type: "PING", id: 2 }));
    splitter.push(encoder.encode({ type: "RST_STREAM", streamId: 1, status: 5 }));
    splitter.push(encoder.encode({ type: "GOAWAY", lastGoodStreamId: 3, status: 0 }));
    const payload = ["payload 3 of 4", "payload 3 of 6", "finish 3"];
    expect(said).toEqual(["reply 1", ...payload, "ping 2", "finish 1", "goaway"]);
  });

  it("refuses a control frame longer than it may hold, from its header", () => {
    const splitter = new FrameSplitter(
      {
        onBytes: () => {},
        onPayload: () => {},
        onReply: () => {},
        onFinish: () => {},
        onGoAway: () => {},
        onPing: () => {},
      },
      16,
    );
    expect(() => splitter.push(Uint8Array.of(0x80, 3, 0, 4, 0, 0, 0, 17))).toThrow(
      "a control frame of 17 bytes",
    );
  });
});
