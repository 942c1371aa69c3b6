import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Component } from "../lifecycle/component.ts";
import type { ListenAddress } from "../net/listen.ts";

interface RunningListener extends Component {
  /** The address, with the port that the system assigned. */
  readonly at: ListenAddress;
}

/** Starts listening; stopping destroys the remaining connections. Rejects if the address cannot be bound. */
export async function startListener(
  server: Server,
  listen: (server: Server) => Promise<ListenAddress>,
): Promise<RunningListener> {
  const close = closerOf(server);
  try {
    return { at: await listen(server), stop: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Destroys every connection and stops listening. Node does not track upgraded connections and would
 * wait for them forever.
 */
function closerOf(server: Server): () => Promise<void> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
      for (const socket of sockets) socket.destroy();
    });
}
