import type { Server } from "node:net";

/**
 * Connections in the kernel that a closing listener still accepts: Node's listen backlog. Past it
 * they are reset.
 */
const MAX_TURNS = 511;

/**
 * Closes a server once a turn of the event loop has accepted nothing. Closing earlier would reset
 * connections that only the kernel has accepted.
 */
export async function stopAccepting(server: Server): Promise<void> {
  let accepted = 0;
  const count = (): void => {
    accepted += 1;
  };
  server.on("connection", count);
  await turn();
  for (let turns = 0, before = -1; server.listening && accepted !== before && turns < MAX_TURNS; turns += 1) {
    before = accepted;
    await turn();
  }
  server.off("connection", count).close();
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
