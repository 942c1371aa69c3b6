import { connect, type Socket } from "node:net";
import type { DialOptions } from "@sluice/client/internal/net/dial";

/** How to reach another process, which owns a session. */
export interface OwnerConnection {
  /** As `dial`. Rejects with OwnerGoneError, ENOENT or ECONNREFUSED if the process no longer exists. */
  connect(options: DialOptions): Promise<Socket>;
  /** The response timeout, in milliseconds. */
  readonly responseMs: number;
}

/** The gateway no longer has a process of this name. */
export class OwnerGoneError extends Error {}

/** Connects to a process on this machine. */
export function atSocket(socketPath: string, responseMs: number): OwnerConnection {
  return { connect: () => connectTo(socketPath), responseMs };
}

/** Rejects with the system's error. */
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
