import type { Server } from "node:http";
import type { Socket } from "node:net";

/** Cuts every connection and stops listening. */
export function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/** Like `closeServer`, for a server whose connections may have been upgraded: Node lets those go, and waits for them for ever. */
export function closerOf(server: Server): () => Promise<void> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return () => {
    const closed = closeServer(server);
    for (const socket of sockets) socket.destroy();
    return closed;
  };
}
