import { connect, type Socket } from "node:net";
import type { DialOptions } from "../../net/dial.ts";

/** How another process, which owns a session, is reached. */
export interface OwnerConnection {
  /** As `dial`. Rejects with OwnerGoneError, ENOENT or ECONNREFUSED where there is no such process any more. */
  connect(options: DialOptions): Promise<Socket>;
  /** Of its response, in milliseconds. */
  readonly responseMs: number;
}

/** No process of that name is part of the gateway any more. */
export class OwnerGoneError extends Error {}

/** A process of this machine. */
export function atSocket(socketPath: string, responseMs: number): OwnerConnection {
  return { connect: () => connectTo(socketPath), responseMs };
}

/** Rejects with the system's own error. */
function connectTo(socketPath: string): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: socketPath, allowHalfOpen: true });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.off("error", reject).on("error", () => {});
      resolve(socket);
    });
  });
}
