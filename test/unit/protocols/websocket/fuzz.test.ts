import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WebSocketRole } from "../../../../protocols/websocket/index.ts";
import {
  conversations,
  cut,
  cutPlaces,
  encodeFrames,
  hostileBytes,
} from "../../../support/protocols/websocket/generators.ts";
import { hexOf, Recorder } from "../../../support/protocols/websocket/recorder.ts";

const roles: readonly WebSocketRole[] = ["server", "client"];

describe.each(roles)("WebSocketFrameDecoder as %s", (role) => {
  const isMasked = role === "server";

  it("turns any bytes into events or one refusal, wherever they are cut", () => {
    fc.assert(
      fc.property(hostileBytes(isMasked), cutPlaces, (bytes, places) => {
        const whole = new Recorder(role).push(bytes);
        const inParts = new Recorder(role);
        for (const part of cut(bytes, places)) inParts.push(part);
        expect(inParts.events).toEqual(whole.events);
        expect(inParts.decoder.isBetweenFrames).toBe(whole.decoder.isBetweenFrames);
        expect(whole.events.slice(0, -1).some(({ type }) => type === "refused" || type === "close")).toBe(
          false,
        );
      }),
      { numRuns: 1500 },
    );
  });

  it("gives back what was encoded, wherever it is cut", () => {
    fc.assert(
      fc.property(conversations, cutPlaces, (frames, places) => {
        const recorder = new Recorder(role);
        for (const part of cut(encodeFrames(frames, isMasked), places)) recorder.push(part);
        const data = frames.filter(({ opcode }) => opcode < 8);
        expect(hexOf(Buffer.concat(recorder.parts.map(({ part }) => part)))).toBe(
          hexOf(Buffer.concat(data.map(({ payload }) => payload))),
        );
        const controls = frames.filter(({ opcode }) => opcode >= 8);
        expect(recorder.events.filter(({ type }) => type === "ping" || type === "pong")).toEqual(
          controls.map(({ opcode, payload }) => ({
            type: opcode === 9 ? "ping" : "pong",
            hex: hexOf(payload),
          })),
        );
        expect(recorder.decoder.isBetweenFrames).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});
