import fc from "fast-check";
import {
  applyMask,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "../../../../protocols/websocket/index.ts";

export interface Frame {
  readonly opcode: number;
  readonly fin: boolean;
  readonly payload: Uint8Array;
  /** Set for a client's frames. */
  readonly maskKey: number;
}

const payloads = fc.oneof(
  { weight: 8, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  { weight: 1, arbitrary: fc.nat(70_000).map((length) => new Uint8Array(length).fill(length)) },
);
const maskKeys = fc.integer({ min: 0, max: 0xffff_ffff });

const controls: fc.Arbitrary<Frame> = fc.record({
  opcode: fc.constantFrom(OPCODE.PING, OPCODE.PONG),
  fin: fc.constant(true),
  payload: fc.uint8Array({ maxLength: 125 }),
  maskKey: maskKeys,
});

/** A message in one to four fragments, with control frames between them. Text is ASCII: `ws` reads it, we relay it. */
const messages: fc.Arbitrary<Frame[]> = fc
  .record({
    opcode: fc.constantFrom(OPCODE.TEXT, OPCODE.BINARY),
    fragments: fc.array(
      fc.record({ payload: payloads, maskKey: maskKeys, before: fc.array(controls, { maxLength: 2 }) }),
      { minLength: 1, maxLength: 4 },
    ),
  })
  .map(({ opcode, fragments }) =>
    fragments.flatMap(({ payload, maskKey, before }, at): Frame[] => [
      ...before,
      {
        opcode: at === 0 ? opcode : OPCODE.CONTINUATION,
        fin: at === fragments.length - 1,
        payload: opcode === OPCODE.TEXT ? payload.map((byte) => byte & 0x7f) : payload,
        maskKey,
      },
    ]),
  );

export const conversations: fc.Arbitrary<Frame[]> = fc
  .array(messages, { maxLength: 5 })
  .map((sequences) => sequences.flat());

export function encodeFrame({ opcode, fin, payload, maskKey }: Frame, isMasked: boolean): Uint8Array {
  const frame = new Uint8Array(MAX_FRAME_HEADER_BYTES + payload.length);
  const headerBytes = isMasked
    ? writeMaskedFrameHeader(frame, 0, opcode, payload.length, fin, maskKey)
    : writeFrameHeader(frame, 0, opcode, payload.length, fin);
  frame.set(payload, headerBytes);
  const end = headerBytes + payload.length;
  if (isMasked) applyMask(frame.subarray(headerBytes, end), maskKey, 0);
  return frame.subarray(0, end);
}

export function encodeFrames(frames: readonly Frame[], isMasked: boolean): Uint8Array {
  return Uint8Array.from(Buffer.concat(frames.map((frame) => encodeFrame(frame, isMasked))));
}

/** Cuts bytes at the given places, which are fractions of the whole. */
export function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = places.map((place) => Math.floor(place * bytes.length)).sort((a, b) => a - b);
  const starts = [0, ...ends];
  return starts.map((start, at) => bytes.subarray(start, ends[at] ?? bytes.length));
}

export const cutPlaces = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 8 });

/** Bytes that are often nearly valid: a conversation with some bytes changed, or random bytes. */
export function hostileBytes(isMasked: boolean): fc.Arbitrary<Uint8Array> {
  const changes = fc.array(fc.record({ place: fc.nat(), byte: fc.nat(255) }), { minLength: 1, maxLength: 4 });
  const changed = fc.tuple(conversations, changes).map(([frames, edits]) => {
    const bytes = encodeFrames(frames, isMasked);
    for (const { place, byte } of edits) if (bytes.length > 0) bytes[place % bytes.length] = byte;
    return bytes;
  });
  return fc.oneof(fc.uint8Array({ maxLength: 300 }), changed, headerSoup(isMasked));
}

/** Headers of every kind in a row, so that tests reach later rules as well as the first one. */
function headerSoup(isMasked: boolean): fc.Arbitrary<Uint8Array> {
  const frame = fc
    .record({
      opcode: fc.constantFrom(0, 1, 2, 2, 3, 8, 9, 10, 11),
      fin: fc.boolean(),
      payload: fc.uint8Array({ maxLength: 8 }),
      maskKey: maskKeys,
    })
    .map((one) => encodeFrame(one, isMasked));
  return fc.array(frame, { maxLength: 12 }).map((frames) => Uint8Array.from(Buffer.concat(frames)));
}
