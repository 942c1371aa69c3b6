import { expect, it } from "vitest";
import { ByteCollector } from "../../protocols/bytes/index.ts";
import { decodeProxyHeader } from "../../protocols/proxy-protocol/index.ts";
import { Base64Decoder, ChannelDemux, ResizeDecoder } from "../../protocols/remotecommand/index.ts";
import { MAX_HEADER_BYTES, ResumeFrameDecoder, writeDataHeader } from "../../protocols/resume/frames.ts";
import { ResumeSession } from "../../protocols/resume/index.ts";
import { defaultSpdyLimits, FrameDecoder } from "../../protocols/spdy/index.ts";
import { ClientHelloReader } from "../../protocols/tls/index.ts";
import { cpuMsOf } from "../support/cpu-time.ts";
import { binaryHeader, tlv } from "../support/protocols/proxy-protocol/binary-header.ts";
import { Recorder as Http1Recorder } from "../unit/protocols/http1/recorder.ts";

/** Feeds a decoder so many bytes, one at a time, that it has to hold; gives what shows that it took them. */
type Feed = (bytes: number) => unknown;

const feeds: readonly (readonly [string, Feed, unknown])[] = [
  [
    "a response's header line",
    (bytes) => {
      const recorder = new Http1Recorder().push("HTTP/1.1 200 OK\r\nx: ");
      const byte = Buffer.from("a");
      for (let count = 0; count < bytes; count++) recorder.push(byte);
      return recorder.refusal;
    },
    undefined,
  ],
  [
    "a response that begins with a control character",
    (bytes) => {
      const recorder = new Http1Recorder().push("\u0001");
      const byte = Buffer.from("a");
      for (let count = 0; count < bytes; count++) recorder.push(byte);
      return recorder.refusal;
    },
    undefined,
  ],
  [
    "a ClientHello",
    (bytes) => {
      const reader = new ClientHelloReader();
      const handshake = [1, 0, (bytes + 4) >> 8, bytes & 255];
      reader.push(Buffer.of(0x16, 3, 1, (bytes + 8) >> 8, (bytes + 8) & 255, ...handshake));
      // Version, random and no session; then the cipher suites, which are not fed whole.
      reader.push(Buffer.concat([Buffer.alloc(35), Buffer.of((bytes - 40) >> 8, (bytes - 40) & 255)]));
      const byte = Buffer.of(0);
      for (let count = 60; count < bytes; count++) if (reader.push(byte) !== undefined) return "ended";
      return "more";
    },
    "more",
  ],
  [
    "a PROXY protocol header",
    (bytes) => {
      const collector = new ByteCollector();
      for (const byte of binaryHeader(0x20, 0, tlv(4, Array(bytes).fill(0)))) {
        collector.append(Uint8Array.of(byte));
        const header = decodeProxyHeader(collector.bytes);
        if (header !== undefined) return header.byteLength - bytes;
      }
      return "more";
    },
    19,
  ],
  [
    "a control frame of SPDY",
    (bytes) => {
      const entries = bytes / 8;
      const frame = Buffer.alloc(12 + bytes);
      frame.set([0x80, 3, 0, 4, 0, (bytes + 4) >> 16, (bytes + 4) >> 8, bytes + 4, 0, 0]);
      frame.writeUInt16BE(entries, 10);
      const events: string[] = [];
      const handler = {
        onData: () => void events.push("data"),
        onControl: () => void events.push("control"),
      };
      const limits = { ...defaultSpdyLimits, maxSettingsEntries: entries };
      const decoder = new FrameDecoder(handler, limits);
      for (let at = 0; at < frame.length; at++) decoder.push(frame.subarray(at, at + 1));
      return [events, decoder.isBetweenFrames];
    },
    [["control"], true],
  ],
  [
    "a terminal's size",
    (bytes) => {
      const decoder = new ResizeDecoder(Number.POSITIVE_INFINITY);
      decoder.push(Buffer.from('{"Width":80,"x":"'));
      const byte = Buffer.from("a");
      for (let count = 0; count < bytes; count++) if (decoder.push(byte).length > 0) return "ended";
      return decoder.push(Buffer.from('"}'));
    },
    [{ width: 80, height: 0 }],
  ],
  [
    "a message in base64",
    (bytes) => {
      const decoder = new Base64Decoder();
      const byte = Buffer.from("A");
      let decoded = 0;
      for (let count = 0; count < bytes; count++) decoded += decoder.push(byte, false).length;
      return decoded / bytes;
    },
    3 / 4,
  ],
  [
    "the ends of channels",
    (bytes) => {
      let closed = 0;
      const handler = {
        onChannelData: () => {},
        onChannelClose: () => {
          closed += 1;
        },
      };
      const demux = new ChannelDemux({ isBase64: false, hasClose: true }, handler);
      for (let count = 0; count < bytes; count++) {
        demux.push(Uint8Array.of(255), true, false);
        demux.push(Uint8Array.of(), false, false);
        demux.push(Uint8Array.of(1), false, true);
      }
      return closed / bytes;
    },
    1,
  ],
  [
    "what a resumable session sent and nothing has acknowledged",
    (bytes) => {
      let sent = 0;
      const nothing = (): void => {};
      const session = new ResumeSession(1 << 20, {
        send: (_header, payload) => {
          sent += payload?.byteLength ?? 0;
        },
        onData: nothing,
        onEnd: nothing,
        onRoom: nothing,
        onFinished: nothing,
        onAbort: nothing,
      });
      const byte = Uint8Array.of(1);
      for (let count = 0; count < bytes; count++) session.write(byte);
      session.attach(0);
      return [sent / bytes, session.unacknowledgedBytes / bytes];
    },
    [1, 1],
  ],
  [
    "a frame of a resumable session",
    (bytes) => {
      let received = 0;
      const nothing = (): void => {};
      const onData = (_offset: number, part: Uint8Array): void => {
        received += part.byteLength;
      };
      const decoder = new ResumeFrameDecoder({ onData, onFin: nothing, onAck: nothing, onAbort: nothing });
      const header = new Uint8Array(MAX_HEADER_BYTES);
      writeDataHeader(header, 0, 0, 0);
      header.forEach((byte, at) => void decoder.push(Uint8Array.of(byte), at === 0, false));
      const byte = Uint8Array.of(1);
      for (let count = 0; count < bytes; count++) decoder.push(byte, false, false);
      return received / bytes;
    },
    1,
  ],
];

it.each(feeds)("%s is held in time that grows as it does, byte by byte", (_, feed, outcome) => {
  const timeOf = (bytes: number): number => cpuMsOf(() => expect(feed(bytes)).toEqual(outcome));
  const leastOf = (bytes: number): number => Math.min(...Array.from({ length: 7 }, () => timeOf(bytes)));
  leastOf(2_048);
  // Other programs can slow one of the two down; what grows faster never passes.
  let ratio = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 6 && ratio > 2.3; attempt++) ratio = leastOf(8_192) / leastOf(4_096);
  expect(ratio).toBeLessThanOrEqual(2.3);
});
