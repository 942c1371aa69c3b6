import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Component } from "../lifecycle/component.ts";
import type { ListenAddress } from "../net/listen.ts";

export interface RunningListener extends Component {
  /** With the port that the system chose. */
  readonly at: ListenAddress;
}

/** Makes the server take connections; stopping cuts those that are left. Rejects when the address cannot be taken. */
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

/** Cuts every connection and stops listening. Node lets go of upgraded connections, and would wait for them for ever. */
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
