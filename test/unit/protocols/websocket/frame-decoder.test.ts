import { describe, expect, it } from "vitest";
import { WebSocketFrameDecoder } from "../../../../protocols/websocket/index.ts";
import { bytesOf, Recorder } from "../../../support/protocols/websocket/recorder.ts";

describe("WebSocketFrameDecoder", () => {
  it("hands out subarrays of what was pushed, unmasked in place", () => {
    const chunk = bytesOf("82 85 37fa213d 7f9f4d5158");
    const recorder = new Recorder("server");
    recorder.decoder.push(chunk);
    const part = recorder.parts[0]?.part;
    expect(part?.buffer).toBe(chunk.buffer);
    expect(part?.byteOffset).toBe(chunk.byteOffset + 6);
    expect(Buffer.from(chunk.subarray(6)).toString()).toBe("Hello");
  });

  it("leaves a server's bytes as they are", () => {
    const chunk = bytesOf("82 05 48656c6c6f");
    new Recorder("client").decoder.push(chunk);
    expect(chunk).toEqual(bytesOf("82 05 48656c6c6f"));
  });

  it("hands payload on before the frame is complete", () => {
    const recorder = new Recorder("client").push(bytesOf("82 7f 0000000001000000 aa bb"));
    expect(recorder.parts).toEqual([{ part: bytesOf("aabb"), isFirst: true, isLast: false }]);
    recorder.push(bytesOf("cc"));
    expect(recorder.parts.at(-1)).toEqual({ part: bytesOf("cc"), isFirst: false, isLast: false });
    expect(recorder.decoder.isBetweenFrames).toBe(false);
  });

  it("marks the first and last part of a message, not of a frame", () => {
    const recorder = new Recorder("client").push(bytesOf("02 00 00 01 aa 00 01 bb 80 00"));
    expect(recorder.parts).toEqual([
      { part: bytesOf("aa"), isFirst: true, isLast: false },
      { part: bytesOf("bb"), isFirst: false, isLast: false },
      { part: bytesOf(""), isFirst: false, isLast: true },
    ]);
  });

  it("refuses an oversized frame from its header, before any payload is handed on", () => {
    const recorder = new Recorder("client", { maxFrameBytes: 4 }).push(bytesOf("82 05 0102030405"));
    expect(recorder.parts).toEqual([]);
    expect(recorder.events).toEqual([{ type: "refused", closeCode: 1009 }]);
  });

  it("takes no limit of payload for a limit of control frames", () => {
    const recorder = new Recorder("client", { maxFrameBytes: 0, maxMessageBytes: 0 }).push(
      bytesOf("89 02 0102"),
    );
    expect(recorder.events).toEqual([{ type: "ping", hex: "0102" }]);
  });

  it("counts each message anew", () => {
    const limits = { maxMessageBytes: 2, maxFragments: 2 };
    const message = "02 01 aa 80 01 bb ";
    const recorder = new Recorder("client", limits).push(bytesOf(message.repeat(3).trim()));
    expect(recorder.events).toEqual(Array(3).fill({ type: "binary", hex: "aabb" }));
  });

  it("stops a message of endless empty fragments", () => {
    const recorder = new Recorder("client").push(bytesOf("02 00 0000*20000"));
    expect(recorder.events).toEqual([{ type: "refused", closeCode: 1008 }]);
  });

  it("delivers everything before the offence", () => {
    const recorder = new Recorder("client").push(bytesOf("82 01 aa 89 00 83 00"));
    expect(recorder.events.map(({ type }) => type)).toEqual(["binary", "ping", "refused"]);
  });

  it("ignores what follows a refusal or a Close frame", () => {
    for (const end of ["83 00", "88 00"]) {
      const recorder = new Recorder("client").push(bytesOf(`${end} 82 01 aa`)).push(bytesOf("82 01 aa"));
      expect(recorder.events.length).toBe(1);
      expect(recorder.parts).toEqual([]);
      expect(recorder.decoder.isBetweenFrames).toBe(true);
    }
  });

  it("lets a handler's own error out and is over", () => {
    const pings: number[] = [];
    const decoder = new WebSocketFrameDecoder("client", {
      onMessage: () => {
        throw new RangeError("full");
      },
      onPing: (payload) => pings.push(payload.length),
      onPong: () => undefined,
      onClose: () => undefined,
    });
    expect(() => decoder.push(bytesOf("82 01 aa 89 00"))).toThrow(RangeError);
    decoder.push(bytesOf("89 00"));
    expect(pings).toEqual([]);
  });

  it("keeps a control payload that chunks cut, apart from the chunks", () => {
    const payloads: Uint8Array[] = [];
    const decoder = new WebSocketFrameDecoder("client", {
      onMessage: () => undefined,
      onPing: (payload) => payloads.push(payload),
      onPong: () => undefined,
      onClose: () => undefined,
    });
    const first = bytesOf("89 04 0102");
    decoder.push(first);
    first.fill(0);
    decoder.push(bytesOf("0304 89 02 0506"));
    expect(payloads).toEqual([bytesOf("01020304"), bytesOf("0506")]);
  });
});
