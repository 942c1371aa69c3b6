import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { frameOf, headerBlockOf } from "./http2-frames.ts";

export type Lines = readonly (readonly [name: string, value: string])[];

/**
 * A backend's answer to one request, in any version of HTTP, with lines that no library would send.
 */
export interface ScriptedAnswer {
  readonly interims?: readonly { readonly status: number; readonly lines: Lines }[];
  readonly status: number;
  readonly reason?: string;
  readonly lines: Lines;
  readonly body?: string;
  /** How HTTP/1.1 delimits the body; by default by a length. Trailers need chunks. */
  readonly framing?: "length" | "chunked" | "close";
  readonly trailers?: Lines;
  /**
   * The connection is cut after this many bytes of the answer; over HTTP/2 the stream is reset
   * after the head.
   */
  readonly cutAt?: number;
}

export interface ScriptedBackend {
  readonly port: number;
  readonly connections: number;
  /** The answer to requests from now on. */
  answer: ScriptedAnswer;
  stop(): Promise<void>;
}

/**
 * A backend that gives its scripted answer, byte for byte, to every request without a body, over
 * HTTP/1.1 or h2c.
 */
export async function startScriptedBackend(version: "http/1.1" | "h2c"): Promise<ScriptedBackend> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
    if (version === "h2c") serveHttp2(socket, () => backend.answer);
    else serveHttp1(socket, () => backend.answer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const backend = {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return sockets.size;
    },
    answer: { status: 200, lines: [] } as ScriptedAnswer,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return backend;
}

function serveHttp1(socket: Socket, current: () => ScriptedAnswer): void {
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString("latin1");
    if (!text.endsWith("\r\n\r\n")) return;
    text = "";
    const { cutAt, framing = "length" } = current();
    const bytes = http1BytesOf(current());
    socket.write(bytes.subarray(0, cutAt));
    if (cutAt !== undefined) socket.destroySoon();
    else if (framing === "close") socket.end();
  });
}

export function http1BytesOf(answer: ScriptedAnswer): Buffer {
  const { interims = [], status, reason = "Whatever", lines, body = "", framing = "length" } = answer;
  const head = (line: string, fields: Lines): string =>
    `HTTP/1.1 ${line}\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  const delimited: Lines =
    framing === "close"
      ? []
      : [
          framing === "length"
            ? ["Content-Length", String(body.length)]
            : (["Transfer-Encoding", "chunked"] as const),
        ];
  const trailers = (answer.trailers ?? []).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const chunk = body === "" ? "" : `${body.length.toString(16)}\r\n${body}\r\n`;
  const text = [
    ...interims.map((interim) => head(`${interim.status} Interim`, interim.lines)),
    head(`${status} ${reason}`, [...lines, ...delimited]),
    framing === "chunked" ? `${chunk}0\r\n${trailers}\r\n` : body,
  ];
  return Buffer.from(text.join(""), "latin1");
}

const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, CONTINUATION] = [0, 1, 3, 4, 6, 9] as const;
const [END_STREAM, END_HEADERS, ACK] = [1, 4, 1] as const;
const PREFACE_BYTES = 24;
const MAX_PAYLOAD_BYTES = 16_384;

function serveHttp2(socket: Socket, current: () => ScriptedAnswer): void {
  let held = Buffer.alloc(0);
  let skip = PREFACE_BYTES;
  socket.write(frameOf(SETTINGS, 0, 0));
  socket.on("data", (chunk: Buffer) => {
    held = Buffer.concat([held, chunk]);
    while (held.length >= skip + 9) {
      const length = held.readUIntBE(skip, 3);
      if (held.length < skip + 9 + length) break;
      const [type, flags] = [held.readUInt8(skip + 3), held.readUInt8(skip + 4)];
      const streamId = held.readUInt32BE(skip + 5);
      const payload = Buffer.from(held.subarray(skip + 9, skip + 9 + length));
      held = held.subarray(skip + 9 + length);
      skip = 0;
      if (type === SETTINGS && (flags & ACK) === 0) socket.write(frameOf(SETTINGS, ACK, 0));
      if (type === PING && (flags & ACK) === 0) socket.write(frameOf(PING, ACK, 0, payload));
      if (type === HEADERS) socket.write(http2BytesOf(current(), streamId));
    }
  });
}

/** Bodies are shorter than the windows that every peer allows (65,535 bytes). */
function http2BytesOf(answer: ScriptedAnswer, streamId: number): Buffer {
  const { interims = [], status, lines, body = "", trailers = [], cutAt } = answer;
  const section = (fields: Lines, flags: number): Buffer => {
    const lower = fields.map(([name, value]) => [name.toLowerCase(), value] as const);
    const block = headerBlockOf(lower);
    const frames: Buffer[] = [];
    for (let at = 0; at === 0 || at < block.length; at += MAX_PAYLOAD_BYTES) {
      const isLast = at + MAX_PAYLOAD_BYTES >= block.length;
      const type = at === 0 ? HEADERS : CONTINUATION;
      const set = (at === 0 ? flags : 0) | (isLast ? END_HEADERS : 0);
      frames.push(frameOf(type, set, streamId, block.subarray(at, at + MAX_PAYLOAD_BYTES)));
    }
    return Buffer.concat(frames);
  };
  const head = (code: number, fields: Lines): Lines => [[":status", String(code)], ...fields];
  const frames = interims.map((interim) => section(head(interim.status, interim.lines), 0));
  frames.push(section(head(status, lines), 0));
  if (cutAt !== undefined) {
    return Buffer.concat([...frames, frameOf(RST_STREAM, 0, streamId, Buffer.from([0, 0, 0, 2]))]);
  }
  for (let at = 0; at < body.length; at += MAX_PAYLOAD_BYTES) {
    const part = Buffer.from(body.slice(at, at + MAX_PAYLOAD_BYTES), "latin1");
    frames.push(frameOf(DATA, 0, streamId, part));
  }
  if (trailers.length > 0) frames.push(section(trailers, END_STREAM));
  else frames.push(frameOf(DATA, END_STREAM, streamId));
  return Buffer.concat(frames);
}
