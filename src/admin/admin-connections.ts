import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";

/** The share of all connections that one address may hold. */
const ADDRESS_SHARE = 3 / 4;

/**
 * Limits a server's connections, in total and for each address. A new connection replaces the
 * oldest one that has not sent a complete head; if there is none, the new one is closed.
 */
export function boundAdminConnections(server: Server, maxConnections: number): void {
  const maxOfAddress = Math.ceil(maxConnections * ADDRESS_SHARE);
  const open = new Map<Socket, string>();
  /** The oldest first. */
  const headless = new Set<Socket>();
  const counts = new Map<string, number>();
  const forget = (socket: Socket): void => {
    const address = open.get(socket);
    if (address === undefined) return;
    open.delete(socket);
    headless.delete(socket);
    const left = (counts.get(address) ?? 1) - 1;
    if (left === 0) counts.delete(address);
    else counts.set(address, left);
  };
  server.on("connection", (socket: Socket) => {
    const { remoteAddress: address = "" } = socket;
    const isPastShare = (counts.get(address) ?? 0) >= maxOfAddress;
    if (isPastShare || open.size >= maxConnections) {
      const oldest = [...headless].find((other) => !isPastShare || open.get(other) === address);
      if (oldest === undefined) {
        socket.destroy();
        return;
      }
      forget(oldest);
      oldest.destroy();
    }
    open.set(socket, address);
    headless.add(socket);
    counts.set(address, (counts.get(address) ?? 0) + 1);
    socket.once("close", () => forget(socket));
  });
  server.on("request", ({ socket }: IncomingMessage) => headless.delete(socket));
}
