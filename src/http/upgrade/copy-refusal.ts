import { ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { Duplex, Readable } from "node:stream";
import {
  flatHeaders,
  type HeaderLine,
  hasHeader,
  withoutHeaders,
} from "@sluice/client/internal/http/header-list";
import type { RefusedUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";
import { breakStream, isHttp2Stream } from "@sluice/client/internal/net/abort-socket";
import { requestEdit } from "../hop-by-hop.ts";
import { http2ResponseHeaders } from "../http2-headers.ts";
import { closeWhenSent } from "../watch-http2-session.ts";

/**
 * A refused upgrade's answer from its head to the client's close, as in Kubernetes; of an answer that
 * may take longer, a client that takes nothing or does not close. Past it: the client is broken off.
 */
const REFUSAL_DEADLINE_MS = 10_000;

/** Up to this size a refusal without a length gets one; longer ones are sent in chunks. */
const MAX_MEASURED_REFUSAL_BYTES = 64 * 1024;

interface CopyRefusalOptions {
  readonly deadlineMs?: number | undefined;
  /** Called with the size of each part of the body. */
  readonly onBytes?: ((bytes: number) => void) | undefined;
}

/** A refusal whose body is read part by part. */
type Refusal = Omit<RefusedUpgrade, "body"> & { readonly body: AsyncIterable<Buffer> };

/**
 * Copies an upstream's refusal to the client, then closes both connections. A truncated or late body
 * breaks the client's connection (RFC 9112 section 8). `client`: an upgrade's socket, an HTTP/2 stream
 * or a ServerResponse. Never rejects.
 */
export async function copyRefusal(
  refused: RefusedUpgrade,
  client: Duplex | ServerResponse,
  options: CopyRefusalOptions = {},
): Promise<void> {
  const socket = client instanceof ServerResponse ? client.socket : client;
  if (socket === null || socket.destroyed) {
    refused.body.destroy();
    return;
  }
  const abort = (): void => {
    refused.body.destroy();
    if (isHttp2Stream(socket)) breakStream(socket);
    else socket.destroy();
  };
  socket.on("error", abort).on("close", abort);
  const deadlineMs = options.deadlineMs ?? REFUSAL_DEADLINE_MS;
  let deadline = setTimeout(abort, deadlineMs);
  try {
    const refusal = { ...refused, body: counted(refused.body, options.onBytes) };
    if (client instanceof ServerResponse) await copyToResponse(refusal, client);
    else if (isHttp2Stream(client)) await copyToStream(refusal, client);
    else await copyToSocket(refusal, client);
    clearTimeout(deadline);
    deadline = setTimeout(abort, Math.min(deadlineMs, REFUSAL_DEADLINE_MS));
    await closed(socket);
  } catch {
    abort();
  } finally {
    clearTimeout(deadline);
  }
}

async function* counted(body: Readable, count?: (bytes: number) => void): AsyncGenerator<Buffer> {
  for await (const part of body as AsyncIterable<Buffer>) {
    count?.(part.length);
    yield part;
  }
}

async function copyToResponse(refused: Refusal, response: ServerResponse): Promise<void> {
  response.sendDate = false;
  response.writeHead(refused.status, refused.statusMessage, flatHeaders(refusalHeaders(refused)));
  for await (const part of refused.body) {
    if (!response.write(part)) await drained(response);
  }
  response.end();
}

/** A stream's frames mark the end of the body. Its connection carries other streams, so it stays open. */
async function copyToStream(refused: Refusal, stream: ServerHttp2Stream): Promise<void> {
  stream.respond(http2ResponseHeaders(refused.status, refusalHeaders(refused)));
  await copyParts(refused.body, stream, (part) => stream.write(part));
  stream.end();
  closeWhenSent(stream);
}

async function copyToSocket(refused: Refusal, socket: Duplex): Promise<void> {
  const headers = refusalHeaders(refused);
  if (hasHeader(headers, "content-length") || refused.status === 204 || refused.status === 304) {
    socket.write(encodeHead(refused, headers));
    await copyParts(refused.body, socket, (part) => socket.write(part));
  } else {
    await copyUnmeasured(refused, headers, socket);
  }
  socket.end();
}

/** Buffers the body to find its length, which every client understands; falls back to chunks. */
async function copyUnmeasured(refused: Refusal, headers: HeaderLine[], socket: Duplex): Promise<void> {
  let held: Buffer[] | undefined = [];
  let heldBytes = 0;
  await copyParts(refused.body, socket, (part) => {
    if (held === undefined) return writeChunk(socket, part);
    held.push(part);
    heldBytes += part.length;
    if (heldBytes <= MAX_MEASURED_REFUSAL_BYTES) return;
    socket.write(encodeHead(refused, [...headers, ["Transfer-Encoding", "chunked"]]));
    writeChunk(socket, Buffer.concat(held));
    held = undefined;
  });
  if (held === undefined) {
    socket.write("0\r\n\r\n");
    return;
  }
  const body = Buffer.concat(held);
  socket.write(
    Buffer.concat([encodeHead(refused, [...headers, ["Content-Length", String(body.length)]]), body]),
  );
}

async function copyParts(
  body: Refusal["body"],
  socket: Duplex,
  write: (part: Buffer) => void,
): Promise<void> {
  for await (const part of body) {
    write(part);
    if (socket.writableNeedDrain) await drained(socket);
  }
}

function writeChunk(socket: Duplex, part: Buffer): void {
  socket.cork();
  socket.write(`${part.length.toString(16)}\r\n`);
  socket.write(part);
  socket.write("\r\n");
  socket.uncork();
}

/**
 * The upstream's headers without those of its connection. `Content-Length` stays if the upstream sent
 * one.
 */
function refusalHeaders({ status, rawHeaders }: Refusal): HeaderLine[] {
  // A chunked response's body arrives decoded, and a 426 must name the protocol to upgrade to (RFC 9110
  // section 15.5.22).
  const kept = withoutHeaders(requestEdit(rawHeaders).lines(), ["trailer"]);
  if (status !== 426) return [...kept, ["Connection", "close"]];
  const upgrades = rawHeaders.filter(([name]) => name.toLowerCase() === "upgrade");
  return [...kept, ...upgrades, ["Connection", "close, Upgrade"]];
}

function encodeHead({ status, statusMessage }: Refusal, headers: readonly HeaderLine[]): Buffer {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return Buffer.from(`HTTP/1.1 ${status} ${statusMessage}\r\n${lines}\r\n`, "latin1");
}

function drained(writable: Duplex | ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const stalled = setTimeout(() => writable.destroy(), REFUSAL_DEADLINE_MS);
    const settle = (): void => {
      clearTimeout(stalled);
      writable.off("drain", settle).off("close", settle);
      resolve();
    };
    // If the client has closed, its refusal is destroyed, which ends the copy.
    writable.on("drain", settle).on("close", settle);
  });
}

/**
 * Reads and discards until the client closes. If a socket closes with unread input, the kernel resets
 * it, and the client loses bytes that it has not read.
 */
function closed(socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) return resolve();
    socket.once("close", () => resolve());
    const destroyWhenFlushed = (): void => {
      if (socket.writableFinished) socket.destroy();
      else socket.once("finish", () => socket.destroy());
    };
    if (socket.readableEnded) destroyWhenFlushed();
    else socket.once("end", destroyWhenFlushed);
    socket.resume();
  });
}
