import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  applyMask,
  encodeControlFrame,
  OPCODE,
  WebSocketFrameWalker,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "../../../../protocols/websocket/index.ts";

const MASK_KEY = 0x1ad34c7f;
const MARK = Buffer.from("mark");

interface Frame {
  readonly opcode: number;
  readonly payload: Uint8Array;
}

function bytesOf({ opcode, payload }: Frame, isMasked: boolean): Buffer {
  const header = new Uint8Array(14);
  const body = Buffer.from(payload);
  const headerBytes = isMasked
    ? writeMaskedFrameHeader(header, 0, opcode, body.length, true, MASK_KEY)
    : writeFrameHeader(header, 0, opcode, body.length, true);
  if (isMasked) applyMask(body, MASK_KEY, 0);
  return Buffer.concat([header.subarray(0, headerBytes), body]);
}

function walked(wire: Buffer, lengths: readonly number[], role: "server" | "client", inserts = false) {
  const passed: Uint8Array[] = [];
  const pings: string[] = [];
  const walker = new WebSocketFrameWalker(role, {
    onMessageStart: () => {},
    onPayload: () => {},
    onMessageEnd: () => {},
    onCloseStart: () => {},
    onClose: () => {},
    onPing: (payload) => void pings.push(Buffer.from(payload).toString("hex")),
    onPass: (bytes) => void passed.push(Buffer.from(bytes)),
    onBoundary: () => void passed.push(bytesOf({ opcode: OPCODE.PONG, payload: MARK }, role === "server")),
  });
  for (let at = 0, turn = 0; at < wire.length; turn++) {
    const length = lengths[turn % lengths.length] as number;
    if (inserts) walker.awaitBoundary();
    walker.push(Buffer.from(wire.subarray(at, at + length)));
    at += length;
  }
  return { passed: Buffer.concat(passed), pings, isBetweenFrames: walker.isBetweenFrames };
}

const frame = fc.record({
  opcode: fc.constantFrom(OPCODE.BINARY, OPCODE.TEXT, OPCODE.PING, OPCODE.PONG),
  payload: fc.uint8Array({ maxLength: 125 }),
});
const frames = fc.array(frame, { maxLength: 15 });
const pieces = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 20 });

describe.each(["server", "client"] as const)("a walker over the frames that a %s receives", (role) => {
  const isMasked = role === "server";
  const wireOf = (all: readonly Frame[]): Buffer => Buffer.concat(all.map((one) => bytesOf(one, isMasked)));
  const isData = ({ opcode }: Frame): boolean => opcode !== OPCODE.PING && opcode !== OPCODE.PONG;

  it("passes every byte but those of PING and PONG, and tells the PINGs unmasked, however they are cut", () => {
    fc.assert(
      fc.property(frames, pieces, (all, lengths) => {
        const { passed, pings, isBetweenFrames } = walked(wireOf(all), lengths, role);
        expect(passed.equals(wireOf(all.filter(isData)))).toBe(true);
        const expected = all.filter(({ opcode }) => opcode === OPCODE.PING);
        expect(pings).toEqual(expected.map(({ payload }) => Buffer.from(payload).toString("hex")));
        expect(isBetweenFrames).toBe(true);
      }),
    );
  });

  it("inserts between two frames what waits for a place there", () => {
    fc.assert(
      fc.property(frames, pieces, (all, lengths) => {
        const { passed } = walked(wireOf(all), lengths, role, true);
        // Read again, what was inserted are whole PONGs, which are taken out.
        const again = walked(passed, [1e6], role);
        expect(again.passed.equals(wireOf(all.filter(isData)))).toBe(true);
      }),
    );
  });
});

describe("a walker", () => {
  it("passes a chunk without heartbeats as it is, and nothing of a frame that nobody accepts", () => {
    const passed: Uint8Array[] = [];
    const walker = new WebSocketFrameWalker("client", {
      onMessageStart: () => {},
      onPayload: () => {},
      onMessageEnd: () => {},
      onCloseStart: () => {},
      onClose: () => {},
      onPing: () => {},
      onPass: (bytes) => void passed.push(bytes),
      onBoundary: () => {},
    });
    const chunk = bytesOf({ opcode: OPCODE.BINARY, payload: Buffer.from("x") }, false);
    walker.push(chunk);
    expect(passed[0]).toBe(chunk);
    const beat = Buffer.from(encodeControlFrame(OPCODE.PING, new Uint8Array(0)));
    expect(() => walker.push(Buffer.concat([beat, chunk, Buffer.from("HTTP")]))).toThrow("reserved bit");
    expect(walker.passedBytes).toBe(beat.length);
    expect(passed).toHaveLength(1);
  });
});
