import type { AddressInfo, Server } from "node:net";

export interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

/** Makes the server take connections, and resolves with where it is. `name` is the listener's in the configuration. */
export type Listen = (server: Server, name: string, where: ListenAddress) => Promise<ListenAddress>;

/** Rejects when the address cannot be taken. Port 0: the system chooses. */
export async function listenAt(server: Server, { address, port }: ListenAddress): Promise<ListenAddress> {
  await listening(server, { host: address, port });
  return server.address() as AddressInfo;
}

/** At a TCP socket that another process opened. Node calls listen(2) again, with a backlog of 511. */
export async function listenAtDescriptor(server: Server, descriptor: number): Promise<ListenAddress> {
  await listening(server, { fd: descriptor });
  const at = server.address();
  if (at === null || typeof at === "string") throw new Error("it is no TCP socket");
  return at;
}

/** At a Unix socket. */
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
