import { Socket, type SocketConstructorOpts } from "node:net";
import type { Duplex } from "node:stream";
import type { Leg } from "./leg.ts";
import { ReusedReads } from "./reused-reads.ts";

/** What Node's TCP sockets have without naming it in their types. Unchanged from Node 10 to 26. */
interface SocketInternals {
  _handle: { useUserBuffer?: unknown } | null;
}

/**
 * The same accepted connection, reading into memory that is used again (see `ReusedReads`). The leg's socket must be paused
 * and nobody may use it afterwards; its 'close' follows that of the new one, and destroying it destroys both.
 *
 * Only `net.connect` takes `onread` in public; an accepted socket gets it by building a second `Socket` on the first one's handle.
 * That is worth a look behind the curtain: input costs half the CPU. Where the handle is not what is expected (TLS, whose
 * records are read at their size, or another Node), the leg stays as it is.
 */
export function withReusedReads(leg: Leg): Leg {
  const accepted = leg.socket as Duplex & Partial<SocketInternals>;
  const handle = accepted._handle;
  // A TLSSocket keeps state beside its handle: exactly Socket, no subclass.
  const isPlain = Object.getPrototypeOf(accepted) === Socket.prototype && handle?.useUserBuffer !== undefined;
  if (!isPlain || accepted.destroyed || accepted.writableLength > 0) return leg;

  const head = [leg.head];
  for (let chunk: Uint8Array | null = accepted.read(); chunk !== null; chunk = accepted.read())
    head.push(chunk);
  accepted._handle = null;
  const reads = new ReusedReads("tcp");
  const options: SocketConstructorOpts & Record<string, unknown> = {
    handle,
    allowHalfOpen: true,
    highWaterMark: accepted.writableHighWaterMark,
    onread: reads.options,
    pauseOnCreate: true,
  };
  const socket = new Socket(options);
  reads.attach(socket);
  socket.once("close", () => accepted.destroy());
  accepted.once("close", () => socket.destroy());
  return { socket, head: head.length === 1 ? leg.head : Buffer.concat(head) };
}
