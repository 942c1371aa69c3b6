import type { AddressInfo, Server } from "node:net";

/**
 * Connections in the kernel that a closing listener still accepts: Node's listen backlog. Past it
 * they are reset.
 */
const MAX_TURNS = 511;

export interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

/** Starts listening and resolves with the address. `name` is the listener's name in the configuration. */
export type Listen = (server: Server, name: string, where: ListenAddress) => Promise<ListenAddress>;

/** Rejects if the address cannot be bound. Port 0: the system chooses. */
export async function listenAt(server: Server, { address, port }: ListenAddress): Promise<ListenAddress> {
  await listening(server, { host: address, port });
  return server.address() as AddressInfo;
}

/** Listens on a TCP socket that another process opened. Node calls listen(2) again, with a backlog of 511. */
export async function listenAtDescriptor(server: Server, descriptor: number): Promise<ListenAddress> {
  await listening(server, { fd: descriptor });
  const at = server.address();
  if (at === null || typeof at === "string") throw new Error("it is no TCP socket");
  return at;
}

/** Listens on a Unix socket. */
export async function listenAtPath(server: Server, path: string): Promise<ListenAddress> {
  await listening(server, { path });
  return { address: path, port: 0 };
}

function listening(
  server: Server,
  where:
    | { readonly host: string; readonly port: number }
    | { readonly path: string }
    | { readonly fd: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(where, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

export function urlOf(scheme: string, { address, port }: ListenAddress): string {
  return `${scheme}://${address.includes(":") ? `[${address}]` : address}:${port}`;
}

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
