import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../../../protocols/protocol-error.ts";
import {
  type ControlFrame,
  defaultSpdyLimits,
  FrameDecoder,
  FrameEncoder,
} from "../../../../protocols/spdy/index.ts";
import { naiveDecode } from "../../../support/naive-spdy.ts";
import { dataFrame, ScriptedSpdyPeer, type SeenFrame } from "../../../support/scripted-spdy-peer.ts";

const limits = {
  ...defaultSpdyLimits,
  maxControlFrameBytes: 512,
  maxDataFrameBytes: 2000,
  maxHeaderBlockBytes: 1024,
};

const streamId = fc.integer({ min: 1, max: 0x7fff_ffff });
const uint32 = fc.integer({ min: 0, max: 0xffff_ffff });
const name = fc.stringMatching(/^x-[a-z0-9-]{0,12}$/);
const headers = fc.array(fc.tuple(name, fc.string({ unit: "grapheme", maxLength: 40 })), { maxLength: 5 });
const headerMap = headers.map((pairs) => new Map(pairs));
const dataText = fc.record({
  type: fc.constant("DATA" as const),
  streamId,
  text: fc.stringMatching(/^[a-z]{1,30}$/),
  fin: fc.boolean(),
});
const controlFrame: fc.Arbitrary<ControlFrame> = fc.oneof(
  fc.record({
    type: fc.constant("SYN_STREAM" as const),
    streamId,
    associatedStreamId: fc.integer({ min: 0, max: 0x7fff_ffff }),
    priority: fc.integer({ min: 0, max: 7 }),
    fin: fc.boolean(),
    unidirectional: fc.boolean(),
    headers: headerMap,
  }),
  fc.record({ type: fc.constant("SYN_REPLY" as const), streamId, fin: fc.boolean(), headers: headerMap }),
  fc.record({ type: fc.constant("HEADERS" as const), streamId, fin: fc.boolean(), headers: headerMap }),
  fc.record({ type: fc.constant("RST_STREAM" as const), streamId, status: fc.integer({ min: 1, max: 20 }) }),
  fc.record({
    type: fc.constant("SETTINGS" as const),
    entries: fc.array(
      fc.record({
        flags: fc.integer({ min: 0, max: 255 }),
        id: fc.integer({ min: 0, max: 0xff_ffff }),
        value: uint32,
      }),
      { maxLength: 5 },
    ),
  }),
  fc.record({ type: fc.constant("PING" as const), id: fc.integer({ min: 1, max: 0xffff_ffff }) }),
  fc.record({ type: fc.constant("GOAWAY" as const), lastGoodStreamId: streamId, status: uint32 }),
  fc.record({
    type: fc.constant("WINDOW_UPDATE" as const),
    streamId,
    deltaBytes: fc.integer({ min: 0, max: 0x7fff_ffff }),
  }),
);
const conversation = fc.array(fc.oneof(controlFrame, dataText), { maxLength: 12 });

function encode(frames: readonly SeenFrame[]): Uint8Array {
  const encoder = new FrameEncoder();
  return Uint8Array.from(
    Buffer.concat(
      frames.map((frame) =>
        frame.type === "DATA" ? dataFrame(frame.streamId, frame.text, frame.fin) : encoder.encode(frame),
      ),
    ),
  );
}

/** What a decoder makes of the bytes cut at these points: DATA byte by byte, so that parts do not show, and its refusal. */
function decode(bytes: Uint8Array, cuts: readonly number[]): string[] {
  const said: string[] = [];
  const decoder = new FrameDecoder(
    {
      onData(id, part, fin) {
        for (const byte of part) said.push(`${id}:${byte}`);
        if (fin) said.push(`${id}:FIN`);
      },
      onControl: (frame) =>
        said.push(JSON.stringify(frame, (_key, value) => (value instanceof Map ? [...value] : value))),
    },
    limits,
  );
  const points = [...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b);
  try {
    for (let index = 1; index < points.length; index++)
      decoder.push(bytes.subarray(points[index - 1], points[index]));
    said.push(decoder.isBetweenFrames ? "between frames" : "inside a frame");
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    said.push(`refused: ${error.code}`);
  }
  return said;
}

/** Bytes that get past the first header: real conversations with some bytes changed, and noise behind real headers. */
const hostileBytes = fc.oneof(
  fc.uint8Array({ maxLength: 400 }),
  fc
    .tuple(
      conversation,
      fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { minLength: 1, maxLength: 4 }),
    )
    .map(([frames, changes]) => {
      const bytes = encode(frames);
      for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
      return bytes;
    }),
  fc
    .array(
      fc.tuple(
        fc.integer({ min: 0, max: 10 }),
        fc.integer({ min: 0, max: 3 }),
        fc.uint8Array({ maxLength: 60 }),
      ),
      { maxLength: 6 },
    )
    .map((frames) =>
      Uint8Array.from(
        frames.flatMap(([type, flags, payload]) => [
          0x80,
          3,
          0,
          type,
          flags,
          0,
          0,
          payload.length,
          ...payload,
        ]),
      ),
    ),
);

describe("SPDY, given anything", () => {
  it("decodes a conversation as the naive decoder does, and as it was encoded", async () => {
    await fc.assert(
      fc.asyncProperty(conversation, async (frames) => {
        const bytes = encode(frames);
        expect(await naiveDecode(bytes)).toEqual(frames);
        const seen: SeenFrame[] = [];
        const decoder = new FrameDecoder(
          {
            onData: (id, part, fin) =>
              seen.push({ type: "DATA", streamId: id, text: new TextDecoder().decode(part), fin }),
            onControl: (frame) => seen.push(frame),
          },
          defaultSpdyLimits,
        );
        decoder.push(bytes);
        expect(seen).toEqual(frames);
      }),
      { numRuns: 200 },
    );
  });

  it("yields frames or a ProtocolError, the same ones however the bytes are cut", () => {
    fc.assert(
      fc.property(hostileBytes, fc.array(fc.nat(), { maxLength: 8 }), (bytes, cuts) => {
        expect(decode(bytes, cuts)).toEqual(decode(bytes, []));
        expect(decode(bytes, [...bytes.keys()])).toEqual(decode(bytes, []));
      }),
      { numRuns: 500 },
    );
  });

  it("never leaves a session in between: it goes on, or it is over and every stream knows", () => {
    fc.assert(
      fc.property(hostileBytes, fc.constantFrom("client" as const, "server" as const), (bytes, role) => {
        const ends = new Map<number, number>();
        const peer = new ScriptedSpdyPeer(role, {
          headerBlocks: "inflate",
          limits: { maxStreams: 3 },
          onStream: (stream) => ({
            onData: (_part, fin) => fin && ends.set(stream.id, (ends.get(stream.id) ?? 0) + 1),
            onEnd: () => ends.set(stream.id, (ends.get(stream.id) ?? 0) + 1),
          }),
        });
        let isRefused = false;
        try {
          peer.session.receive(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
          isRefused = true;
        }
        expect(peer.session.openStreamCount).toBeLessThanOrEqual(3);
        if (isRefused) expect(peer.session.isOver).toBe(true);
        peer.session.receiveEnd();
        expect(peer.session.openStreamCount).toBe(0);
        expect([...ends.values()].every((count) => count === 1)).toBe(true);
        expect(ends.size).toBe(peer.streams.length);
      }),
      { numRuns: 500 },
    );
  });

  it("holds no more than its limits allow: 200 decoders, each with a control frame that never ends", () => {
    const header = Uint8Array.of(0x80, 3, 0, 1, 0, 0, 0x01, 0xff, ...new Uint8Array(100));
    const before = process.memoryUsage().arrayBuffers;
    const decoders = Array.from({ length: 200 }, () => {
      const decoder = new FrameDecoder({ onData() {}, onControl() {} }, limits);
      decoder.push(header);
      return decoder;
    });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(200 * 2 * limits.maxControlFrameBytes);
    expect(decoders.every((decoder) => !decoder.isBetweenFrames)).toBe(true);
  });
});
