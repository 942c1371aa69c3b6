import { readFileSync } from "node:fs";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { ConfigurationError } from "../../../packages/client/src/config/configuration-error.ts";
import { ProtocolError } from "../../../protocols/protocol-error.ts";
import { decodeProxyHeader } from "../../../protocols/proxy-protocol/index.ts";
import { defaultSpdyLimits, FrameDecoder } from "../../../protocols/spdy/index.ts";
import { ClientHelloReader } from "../../../protocols/tls/index.ts";
import { parseManifests } from "../../../src/cluster/manifests.ts";
import { parseConfiguration } from "../../../src/config/configuration.ts";
import { Recorder as Http1Recorder } from "../../unit/protocols/http1/recorder.ts";
import { binaryHeader, tlv, withChecksum } from "../protocols/proxy-protocol/binary-header.ts";
import { Recorder as WebSocketRecorder } from "../protocols/websocket/recorder.ts";
import { archiveOf, archiveRecord } from "./archives.ts";
import { http2Conversation, http2Events, http2Frames } from "./http2-events.ts";
import { unpacksSafely } from "./unpacks.ts";

/** A function that reads untrusted bytes. */
export interface FuzzTarget {
  /**
   * Throws for a finding: an error that is not the format's own, or different results if the bytes
   * arrive in other parts.
   */
  run(bytes: Buffer): void | Promise<void>;
  /** `run` returns a promise. */
  readonly isAsync?: true;
  /** Pieces of the format that mutations insert whole. */
  readonly words: readonly string[];
  /** The inputs from which a search begins if the corpus is empty. */
  readonly seeds: readonly Buffer[];
}

const HTTP1_WORDS = [
  "HTTP/1.1 200 OK\r\n",
  "HTTP/1.1 103 Early Hints\r\n\r\n",
  "HTTP/1.0 404 \r\n",
  "Content-Length: 3\r\n",
  "Transfer-Encoding: chunked\r\n",
  "Connection: close\r\n",
  "\r\n",
  "\n",
  " folded\r\n",
  "3\r\nabc\r\n",
  "a;x=y\r\n",
  "0\r\n",
];
/**
 * SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE, and DATA of
 * stream 1.
 */
const SPDY_WORDS = [1, 2, 3, 4, 6, 7, 8, 9]
  .map((type) => String.fromCharCode(0x80, 3, 0, type, 0, 0, 0, 4, 0, 0, 0, 1))
  .concat("\0\0\0\x01\x01\0\0\x03abc");
const WEBSOCKET_WORDS = [
  "\x82\x03abc",
  "\x01\x01a",
  "\x80\x01b",
  "\x89\x00",
  "\x8a\x01x",
  "\x88\x02\x03\xe8",
  "\x82\x7e\x01\x00",
];
/** Records of test/support/fuzz/archives.ts: the contents of a folder, and malicious entries. */
const TAR_RECORDS = [
  archiveRecord("5", "./"),
  archiveRecord("0", "./a/file", { content: "content" }),
  archiveRecord("0", "./large", { flags: 32, content: "0123456789".repeat(12) }),
  archiveRecord("1", "./second", { link: "./a/file" }),
  archiveRecord("2", "./link", { link: "../../outside" }),
  archiveRecord("0", "./link/kept", { content: "changed" }),
  archiveRecord("0", "../../outside/kept", { content: "changed" }),
  archiveRecord("0", "n".repeat(120), { flags: 8, content: "long" }),
  archiveRecord("0", "./p", { flags: 16, content: "pax" }),
  archiveRecord("x", "pax", { content: "11 size=-1\n" }),
  archiveRecord("5", "./d", { size: 135 }),
  archiveRecord("0", "./odd", { size: 128, content: "short" }),
  archiveRecord("6", "./\x1b[2Jpipe"),
];
const TAR_SEEDS = TAR_RECORDS.map((record) => latin1(`\0${record}`)).concat([
  latin1(`\0${TAR_RECORDS.slice(0, 5).join("")}`),
  Buffer.concat([Buffer.of(1), archiveOf(latin1(`\0${TAR_RECORDS[0]}${TAR_RECORDS[1]}`))]),
]);
const INET = [203, 0, 113, 9, 127, 0, 0, 1, 1, 2, 3, 4];
const PROXY_SEEDS = [
  withChecksum(0x21, 0x11, INET),
  binaryHeader(0x21, 0x21, [...INET, ...INET, ...INET, ...tlv(2, [97]), ...tlv(4, [])]),
  binaryHeader(0x20, 0, []),
  latin1("PROXY TCP4 203.0.113.9 127.0.0.1 1 2\r\n"),
];
const YAML_WORDS = [
  "---\n",
  "- ",
  ": ",
  "\n  ",
  "&a ",
  "*a",
  "<<: *a\n",
  "!!str ",
  "|\n",
  "{",
  "}",
  "[",
  "]",
  "null",
  "1e999",
  "0x10",
  "~",
];

export const fuzzTargets: Readonly<Record<string, FuzzTarget>> = {
  http1: {
    run: cutAnywhere((parts) => parts.reduce((all, part) => all.push(part), new Http1Recorder()).events),
    words: HTTP1_WORDS,
    seeds: [latin1("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")],
  },
  spdy: {
    run: cutAnywhere(spdyEvents),
    words: SPDY_WORDS,
    seeds: [latin1(SPDY_WORDS.join(""))],
  },
  http2: {
    run: cutAnywhere(http2Events),
    words: http2Frames.map((frame) => Buffer.from(frame).toString("latin1")),
    seeds: [http2Conversation],
  },
  tar: {
    isAsync: true,
    run: (bytes) => unpacksSafely(archiveOf(bytes), 64 + 97 * ((bytes.at(-1) ?? 0) % 16)),
    words: [...TAR_RECORDS, "../", "/", "\0", "\x0f./a/file"],
    seeds: TAR_SEEDS,
  },
  proxy: {
    run: cutAnywhere(proxyHeader),
    words: [
      "PROXY TCP6 ",
      "PROXY UNKNOWN",
      "::1 ::",
      " 65535",
      "\r\n",
      ...PROXY_SEEDS.map((seed) => seed.toString("latin1")),
    ],
    seeds: PROXY_SEEDS,
  },
  tls: {
    run: cutAnywhere(serverName),
    words: ["\x16\x03\x01\x00\x30", "\x01\x00\x00\x2c\x03\x03", "\x00\x00\x00\x05\x00\x03\x00\x00\x00"],
    seeds: [
      latin1(`\x16\x03\x01\x00\x30\x01\x00\x00\x2c\x03\x03${"r".repeat(32)}\x00\x00\x02\x13\x01\x01\x00`),
    ],
  },
  websocket: {
    run: cutAnywhere(
      (parts) => parts.reduce((all, part) => all.push(part), new WebSocketRecorder("client")).events,
    ),
    words: WEBSOCKET_WORDS,
    seeds: [latin1(WEBSOCKET_WORDS.join(""))],
  },
  configuration: {
    run: (bytes) => readsText((text) => parseConfiguration(text, "fuzz.yaml"), bytes),
    words: YAML_WORDS,
    seeds: [example("gateway.yaml"), example("node.yaml")],
  },
  manifests: {
    run: (bytes) => readsText((text) => parseManifests([{ name: "fuzz.yaml", text }]), bytes),
    words: YAML_WORDS,
    seeds: [example("cluster.yaml"), example("rbac.yaml")],
  },
};

/**
 * Checks that the bytes give the same result whole and in parts, whose sizes the last byte chooses.
 */
function cutAnywhere(read: (parts: readonly Buffer[]) => unknown): (bytes: Buffer) => void {
  return (bytes) => {
    const step = 1 + ((bytes.at(-1) ?? 0) % 16);
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += step) parts.push(Buffer.from(bytes.subarray(at, at + step)));
    const [whole, cut] = [read([Buffer.from(bytes)]), read(parts)];
    if (!isDeepStrictEqual(whole, cut))
      throw new Error(`in parts of ${step}: ${JSON.stringify(cut)}; whole: ${JSON.stringify(whole)}`);
  };
}

/** Decodes like a listener: from all bytes so far, until there is a result. */
function proxyHeader(parts: readonly Buffer[]): unknown {
  for (let count = 1; count <= parts.length; count++) {
    try {
      const header = decodeProxyHeader(Buffer.concat(parts.slice(0, count)));
      if (header !== undefined) return header;
    } catch (error) {
      if (error instanceof ProtocolError) return error.code;
      throw error;
    }
  }
  return undefined;
}

function spdyEvents(parts: readonly Buffer[]): unknown[] {
  const events: unknown[] = [];
  const data = (id: number, text: string, fin: boolean): void => {
    const last = events.at(-1) as { id?: number; text: string; fin: boolean } | undefined;
    if (last?.id !== id || last.fin) events.push({ id, text, fin });
    else Object.assign(last, { text: last.text + text, fin });
  };
  const limits = { ...defaultSpdyLimits, maxControlFrameBytes: 512, maxHeaderBlockBytes: 1024 };
  const handler = {
    onData: (id: number, part: Uint8Array, fin: boolean) =>
      data(id, Buffer.from(part).toString("latin1"), fin),
    onControl: (frame: unknown) => void events.push(frame),
  };
  const decoder = new FrameDecoder(handler, limits);
  try {
    for (const part of parts) decoder.push(part);
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    events.push(`refused: ${error.code}`);
  }
  return events;
}

function serverName(parts: readonly Buffer[]): unknown {
  const reader = new ClientHelloReader();
  for (const part of parts) {
    const hello = reader.push(part);
    if (hello !== undefined) return hello;
  }
  return "more";
}

function readsText(read: (text: string) => unknown, bytes: Buffer): void {
  try {
    read(bytes.toString("utf8"));
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    if (error.message.length > 100_000)
      throw new Error("an error message of 100,000 characters", { cause: error });
  }
}

function latin1(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

function example(name: string): Buffer {
  return readFileSync(path.resolve(import.meta.dirname, "../../../deploy/examples", name));
}
