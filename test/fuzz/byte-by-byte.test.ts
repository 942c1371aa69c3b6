import { expect, it } from "vitest";
import { ByteCollector } from "../../protocols/bytes/index.ts";
import { decodeProxyHeader } from "../../protocols/proxy-protocol/index.ts";
import { ClientHelloReader } from "../../protocols/tls/index.ts";
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
];

it.each(feeds)("%s is held in time that grows as it does, byte by byte", (_, feed, outcome) => {
  const timeOf = (bytes: number): number => {
    const before = performance.now();
    expect(feed(bytes)).toBe(outcome);
    return performance.now() - before;
  };
  const leastOf = (bytes: number): number => Math.min(...Array.from({ length: 7 }, () => timeOf(bytes)));
  leastOf(2_048);
  // Other programs can slow one of the two down; what grows faster never passes.
  let ratio = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 6 && ratio > 2.3; attempt++) ratio = leastOf(8_192) / leastOf(4_096);
  expect(ratio).toBeLessThanOrEqual(2.3);
});
