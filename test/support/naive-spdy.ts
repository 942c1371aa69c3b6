import type { Transform } from "node:stream";
import { createDeflate, createInflate, constants as zlib } from "node:zlib";
import { HEADER_DICTIONARY } from "../../protocols/spdy/header-compression.ts";

/**
 * A second implementation of SPDY/3.1: whole input, DataView, the asynchronous zlib stream. Slow,
 * plain, and trusting.
 */
export type NaiveFrame = { type: string; [field: string]: unknown };

const names = new Map([
  [1, "SYN_STREAM"],
  [2, "SYN_REPLY"],
  [3, "RST_STREAM"],
  [4, "SETTINGS"],
  [6, "PING"],
  [7, "GOAWAY"],
  [8, "HEADERS"],
  [9, "WINDOW_UPDATE"],
]);

export async function naiveDecode(bytes: Uint8Array): Promise<NaiveFrame[]> {
  const inflate = naiveInflater();
  const frames: NaiveFrame[] = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  while (at < bytes.length) {
    const first = view.getUint32(at);
    const flags = view.getUint8(at + 4);
    const length = view.getUint32(at + 4) & 0xffffff;
    const payload = bytes.slice(at + 8, at + 8 + length);
    at += 8 + length;
    const fin = (flags & 1) === 1;
    if (first < 2 ** 31) {
      frames.push({ type: "DATA", streamId: first, text: new TextDecoder().decode(payload), fin });
      continue;
    }
    const type = names.get(first & 0xffff) ?? "?";
    const word = (index: number) => new DataView(payload.buffer).getUint32(4 * index);
    const streamId = word(0);
    if (type === "SYN_STREAM") {
      const headers = naiveHeaders(await inflate(payload.slice(10)));
      const associatedStreamId = word(1);
      const priority = (payload[8] ?? 0) >> 5;
      frames.push({
        type,
        streamId,
        associatedStreamId,
        priority,
        fin,
        unidirectional: (flags & 2) === 2,
        headers,
      });
    } else if (type === "SYN_REPLY" || type === "HEADERS") {
      frames.push({ type, streamId, fin, headers: naiveHeaders(await inflate(payload.slice(4))) });
    } else if (type === "SETTINGS") {
      const entries = Array.from({ length: word(0) }, (_, index) => {
        const idAndFlags = word(1 + 2 * index);
        return { flags: idAndFlags >>> 24, id: idAndFlags & 0xffffff, value: word(2 + 2 * index) };
      });
      frames.push({ type, entries });
    } else if (type === "PING") frames.push({ type, id: word(0) });
    else if (type === "GOAWAY") frames.push({ type, lastGoodStreamId: word(0), status: word(1) });
    else if (type === "RST_STREAM") frames.push({ type, streamId, status: word(1) });
    else frames.push({ type, streamId, deltaBytes: word(1) });
  }
  return frames;
}

/** The inflater of other SPDY implementations: one zlib stream for the whole connection. */
export function naiveInflater(): (block: Uint8Array) => Promise<Uint8Array> {
  const stream = createInflate({ dictionary: HEADER_DICTIONARY, finishFlush: zlib.Z_SYNC_FLUSH });
  return transformer(stream);
}

export function naiveHeaders(block: Uint8Array): Map<string, string> {
  const view = new DataView(block.buffer, block.byteOffset, block.byteLength);
  const headers = new Map<string, string>();
  let at = 4;
  const text = () => {
    const length = view.getUint32(at);
    at += 4 + length;
    return new TextDecoder().decode(block.slice(at - length, at));
  };
  for (let left = view.getUint32(0); left > 0; left--) {
    const name = text();
    headers.set(name, text());
  }
  return headers;
}

/** The deflater of other SPDY implementations; see naiveInflater. */
export function naiveDeflater(): (plain: Uint8Array) => Promise<Uint8Array> {
  const stream = createDeflate({ level: 9, dictionary: HEADER_DICTIONARY, flush: zlib.Z_SYNC_FLUSH });
  return transformer(stream);
}

function transformer(stream: Transform): (input: Uint8Array) => Promise<Uint8Array> {
  return (input) =>
    new Promise((resolve, reject) => {
      const pieces: Buffer[] = [];
      const collect = (piece: Buffer) => pieces.push(piece);
      stream.on("data", collect);
      stream.once("error", reject);
      stream.write(input, () => {
        stream.off("data", collect);
        stream.off("error", reject);
        resolve(new Uint8Array(Buffer.concat(pieces)));
      });
    });
}
