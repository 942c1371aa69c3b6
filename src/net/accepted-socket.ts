import { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { ReusedReads } from "@sluice/client/internal/net/reused-reads";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";

/** Internals of Node's sockets that its types omit. Unchanged from Node 12 to 26. */
interface SocketInternals {
  readonly _handle: { useUserBuffer?: (memory: Uint8Array) => void } | null;
}

/**
 * The symbols of a socket's read buffer, of its callback, and of the function that provides the
 * next buffer. They are the same in the whole process.
 */
interface ReadNames {
  readonly kBuffer: symbol;
  readonly kBufferCb: symbol;
  readonly kBufferGen: symbol;
}

let names: ReadNames | undefined;

function namesOf(socket: Socket): ReadNames | undefined {
  const symbols = Object.getOwnPropertySymbols(socket);
  const [kBuffer, kBufferCb, kBufferGen] = ["kBuffer", "kBufferCb", "kBufferGen"].map((name) =>
    symbols.find(({ description }) => description === name),
  );
  if (kBuffer === undefined || kBufferCb === undefined || kBufferGen === undefined) return undefined;
  return { kBuffer, kBufferCb, kBufferGen };
}

/**
 * The same connection, paused, reading into reused memory as `net.connect` does with `onread` (see
 * `ReusedReads`). Input costs half the CPU. Returned unchanged if Node's internals differ.
 */
export function withReusedReads(connection: UpgradedConnection): UpgradedConnection {
  const { socket } = connection;
  if (!(socket instanceof Socket) || socket.destroyed || socket.readableEnded) return connection;
  const handle = (socket as unknown as SocketInternals)._handle;
  names ??= namesOf(socket);
  if (names === undefined || typeof handle?.useUserBuffer !== "function") return connection;

  const head = [connection.head];
  for (let chunk: Uint8Array | null = socket.read(); chunk !== null; chunk = socket.read()) head.push(chunk);
  const reads = new ReusedReads(socket instanceof TLSSocket ? "tls" : "tcp");
  reads.attach(socket);
  const memory = reads.options.buffer();
  const named = socket as unknown as Record<symbol, unknown>;
  named[names.kBuffer] = memory;
  named[names.kBufferCb] = reads.options.callback;
  named[names.kBufferGen] = reads.options.buffer;
  handle.useUserBuffer(memory);
  // It now bypasses the stream's own buffer, so a pause stops the handle.
  socket.pause();
  return head.length === 1 ? connection : { socket, head: Buffer.concat(head) };
}
