import { once } from "node:events";
import {
  createServer,
  type Server as HttpServer,
  type IncomingMessage,
  type RequestListener,
  request,
  type ServerResponse,
} from "node:http";
import { type ClientHttp2Session, createServer as createH2cServer, type Http2Server } from "node:http2";
import { createServer as createHttpsServer, request as requestTls } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { Readable } from "node:stream";
import { SeededStream } from "../../packages/lab/src/load/seeded-stream.ts";
import { connectHttp2 } from "./http2-client.ts";

/**
 * A backend's protocol: HTTP/1.1 with a length or in chunks, the same over TLS, or HTTP/2 with
 * prior knowledge.
 */
export type BackendKind = "http/1.1" | "http/1.1 in chunks" | "https" | "h2c";

/**
 * A backend that answers with seeded bytes: `GET /3/40000` returns the first 40,000 bytes of body
 * 3.
 */
export interface SeededBackend {
  readonly port: number;
  stop(): Promise<void>;
}

const SEED = 14;

/** Only "https" needs `tls`. */
export async function startSeededBackend(
  kind: BackendKind,
  tls?: { readonly cert: string; readonly key: string },
): Promise<SeededBackend> {
  const isChunked = kind === "http/1.1 in chunks";
  const answer = ({ url = "" }: { url?: string }, response: ServerResponse): void => {
    const [, body, length] = url.split("/").map(Number);
    const bytes = seededBody(body as number, length as number);
    if (!isChunked) response.setHeader("content-length", bytes.byteLength);
    response.end(bytes);
  };
  let server: HttpServer | Http2Server;
  // Megabytes of bodies that wait on the one connection that all exchanges share.
  if (kind === "h2c") server = createH2cServer({ maxSessionMemory: 1_000 }, answer as never);
  else if (kind === "https") server = createHttpsServer({ ...tls }, answer as RequestListener);
  else server = createServer(answer as RequestListener);
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/**
 * The client whose connection is paused: HTTP/1.1 or HTTP/2, plain or over TLS according to the
 * URL.
 */
export type ClientKind = "HTTP/1.1" | "HTTP/2";

/**
 * An HTTP/2 client's requests fit partly in its windows and our queues; an HTTP/1.1 client must
 * fill the kernel's buffers.
 */
const HELD_BYTES = { "HTTP/1.1": [3_000_000, 500_000], "HTTP/2": [100_000, 16_000] } as const;
const HOLDERS = { "HTTP/1.1": 6, "HTTP/2": 12 } as const;
const OTHERS = 8;
const OTHER_BYTES = 40_000;

/**
 * Clients request seeded bytes and pause. Others request different bytes meanwhile, over their own
 * connections; then the first continue. Resolves with a description of each wrong answer.
 */
export async function foreignBytes(
  client: ClientKind,
  url: string,
  headers: Record<string, string> = {},
): Promise<string[]> {
  const sessions: ClientHttp2Session[] = [];
  const ask = async (kind: ClientKind, body: number, length: number): Promise<HeldAnswer> => {
    if (kind === "HTTP/1.1") return await askHttp1(url, body, length, headers);
    const session = await connectHttp2(url);
    sessions.push(session);
    return await askHttp2(session, body, length, headers);
  };
  const wrong: string[] = [];
  const read = async (answer: HeldAnswer): Promise<void> => {
    const result = await answer.readOn();
    if (result !== "ok") wrong.push(`${answer.name}: ${result}`);
  };
  try {
    const [first, step] = HELD_BYTES[client];
    const held: HeldAnswer[] = [];
    for (let body = 0; body < HOLDERS[client]; body++) {
      held.push(await ask(client, body, first + body * step));
      for (let other = 0; other < OTHERS; other++)
        await read(await ask(other % 2 === 0 ? "HTTP/1.1" : "HTTP/2", 100 + other, OTHER_BYTES));
    }
    await Promise.all(held.map(read));
  } finally {
    for (const session of sessions) session.destroy();
  }
  return wrong;
}

/** An answer whose body has not been read yet. */
interface HeldAnswer {
  readonly name: string;
  /** Reads to the end and compares: "ok", or the fault. */
  readOn(): Promise<string>;
}

/** Requests with node:http, over a connection of its own. */
async function askHttp1(
  url: string,
  body: number,
  length: number,
  headers: Record<string, string>,
): Promise<HeldAnswer> {
  const send = url.startsWith("https:") ? requestTls : request;
  const options = { agent: false, rejectUnauthorized: false, headers };
  const sent = send(`${url}/${body}/${length}`, options).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return { name: `HTTP/1.1 ${body}`, readOn: () => compared(response, body, length) };
}

/** Requests with node:http2: bytes that fit the stream's window arrive, and wait in it. */
async function askHttp2(
  session: ClientHttp2Session,
  body: number,
  length: number,
  headers: Record<string, string>,
): Promise<HeldAnswer> {
  const stream = session.request({ ":path": `/${body}/${length}`, ...headers });
  stream.pause();
  await once(stream, "response");
  return { name: `HTTP/2 ${body}`, readOn: () => compared(stream, body, length) };
}

async function compared(stream: Readable, body: number, length: number): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return compareBody(Buffer.concat(parts), body, length);
}

/** The first bytes of this body. Do not write to them. */
export function seededBody(body: number, length: number): Buffer {
  return new SeededStream(SEED, body).bytes(0, length);
}

/** "ok", or the fault. */
export function compareBody(bytes: Buffer, body: number, length: number): string {
  const wrong = new SeededStream(SEED, body).firstWrong(0, bytes.subarray(0, length));
  if (wrong !== -1) {
    const excerpt = JSON.stringify(bytes.toString("latin1", wrong, wrong + 40));
    return `byte ${wrong} of ${length} is another's: ${excerpt}`;
  }
  return bytes.byteLength === length ? "ok" : `${bytes.byteLength} bytes instead of ${length}`;
}
