import type { Writable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import * as ws from "ws";
import { defaultWebSocketLimits, type WebSocketRole } from "../../../../protocols/websocket/index.ts";
import {
  conversations,
  cut,
  cutPlaces,
  encodeFrames,
  hostileBytes,
} from "../../../support/protocols/websocket/generators.ts";
import { bytesOf, type Event, hexOf, Recorder } from "../../../support/protocols/websocket/recorder.ts";
import { refusals, vectors } from "../../../support/protocols/websocket/vectors.ts";

/** Exported by `ws` and stable, but not documented and so not typed. */
const { Receiver } = ws as unknown as { Receiver: new (options: object) => Writable };

/** What `ws` makes of the same bytes. Unless told, it reads neither text, as we do, nor close reasons, which we do. */
async function eventsOfWs(
  role: WebSocketRole,
  chunks: readonly Uint8Array[],
  skipUTF8Validation = true,
): Promise<Event[]> {
  const events: Event[] = [];
  const receiver = new Receiver({
    isServer: role === "server",
    maxPayload: defaultWebSocketLimits.maxFrameBytes,
    skipUTF8Validation,
  });
  receiver.on("message", (data: Buffer, isBinary: boolean) =>
    events.push({ type: isBinary ? "binary" : "text", hex: hexOf(data) }),
  );
  receiver.on("ping", (payload: Buffer) => events.push({ type: "ping", hex: hexOf(payload) }));
  receiver.on("pong", (payload: Buffer) => events.push({ type: "pong", hex: hexOf(payload) }));
  receiver.on("conclude", (code: number, reason: Buffer) =>
    events.push({ type: "close", code, reason: reason.toString() }),
  );
  const over = new Promise<void>((resolve) => {
    receiver.on("error", (error) => {
      // `ws` keeps the close code for its own WebSocket class under a symbol.
      const symbol = Object.getOwnPropertySymbols(error).find(
        ({ description }) => description === "status-code",
      );
      const closeCode = Reflect.get(error, symbol ?? "") as number;
      events.push({ type: "refused", closeCode });
      resolve();
    });
    receiver.on("conclude", () => resolve());
    receiver.on("finish", resolve);
  });
  for (const chunk of chunks)
    if (!receiver.destroyed && receiver.writable) receiver.write(Buffer.from(chunk));
  if (receiver.writable) receiver.end();
  await over;
  return events;
}

const roles: readonly WebSocketRole[] = ["server", "client"];

describe("the decoder and ws agree", () => {
  it.each(vectors)("on $name", async ({ role, wire, events }) => {
    expect(await eventsOfWs(role, [bytesOf(wire)])).toEqual(events);
  });

  it.each(refusals)("on refusing $name", async ({ role, wire, closeCode }) => {
    const events = await eventsOfWs(role, [bytesOf(wire)], false);
    expect(events.at(-1)).toEqual({ type: "refused", closeCode });
  });

  for (const role of roles) {
    const isMasked = role === "server";

    it(`on conversations as ${role}`, async () => {
      await fc.assert(
        fc.asyncProperty(conversations, cutPlaces, cutPlaces, async (frames, ourPlaces, theirPlaces) => {
          const bytes = encodeFrames(frames, isMasked);
          const recorder = new Recorder(role);
          for (const part of cut(bytes, ourPlaces)) recorder.push(part);
          expect(recorder.events).toEqual(await eventsOfWs(role, cut(bytes, theirPlaces)));
        }),
        { numRuns: 150 },
      );
    });

    // The last frame ends with its length: neither mask key nor payload has come.
    const start = (first: number, length: number): number[] => [first, length | (isMasked ? 0x80 : 0)];
    const tooLong = Buffer.alloc(8);
    tooLong.writeBigUInt64BE(BigInt(defaultWebSocketLimits.maxFrameBytes + 1));
    it.each([
      ["a frame of 2^32 + 1 bytes", [...start(0x82, 127), 0, 0, 0, 1, 0, 0, 0, 1]],
      ["a frame of 2^63 bytes", [...start(0x82, 127), 0x80, 0, 0, 0, 0, 0, 0, 0]],
      ["a frame of one byte past the bound", [...start(0x82, 127), ...tooLong]],
      ["such a first fragment", [...start(0x02, 127), ...tooLong]],
    ])(`on refusing %s by the length alone as ${role}`, async (_what, bytes) => {
      const refused: Event[] = [{ type: "refused", closeCode: 1009 }];
      expect(new Recorder(role).push(Uint8Array.from(bytes)).events).toEqual(refused);
      expect(await eventsOfWs(role, [Uint8Array.from(bytes)])).toEqual(refused);
      const recorder = new Recorder(role);
      for (const byte of bytes.slice(0, -1)) recorder.push(Uint8Array.of(byte));
      expect(recorder.events).toEqual([]);
      expect(recorder.push(Uint8Array.from(bytes.slice(-1))).events).toEqual(refused);
    });

    it(`on hostile bytes as ${role}`, async () => {
      await fc.assert(
        fc.asyncProperty(hostileBytes(isMasked), async (bytes) => {
          const ours = new Recorder(role).push(bytes).events;
          // `ws` waits for the whole length of a control frame before it judges the close code, and so do we.
          const isUtf8 = ours.some((event) => event.type === "refused" && event.closeCode === 1007);
          if (!isUtf8) expect(withoutReasons(ours)).toEqual(withoutReasons(await eventsOfWs(role, [bytes])));
        }),
        { numRuns: 1000 },
      );
    });
  }
});

function withoutReasons(events: readonly Event[]): Event[] {
  return events.map((event) => (event.type === "close" ? { ...event, reason: "" } : event));
}
