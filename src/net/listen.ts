import { closeSync } from "node:fs";
import { type AddressInfo, Server } from "node:net";
import { systemErrorReason } from "@sluice/client/internal/config/system-error";

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
async function listenAtDescriptor(server: Server, descriptor: number): Promise<ListenAddress> {
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

/** A listening socket that this process inherited. */
export interface InheritedSocket {
  readonly descriptor: number;
  /**
   * The configured address that the socket was opened for; absent: the socket serves its listener
   * at any address.
   */
  readonly configured?: ListenAddress | undefined;
}

interface OpenSocket {
  readonly name: string;
  readonly server: Server;
  readonly configured: ListenAddress | undefined;
}

/**
 * The program's listening sockets by listener: inherited ones, and its own. A successor inherits them
 * all.
 */
export class ListeningSockets {
  readonly #inherited: Map<string, InheritedSocket>;
  readonly #open: OpenSocket[] = [];

  constructor(inherited: ReadonlyMap<string, InheritedSocket> = new Map()) {
    this.#inherited = new Map(inherited);
  }

  /** Like `listenAt`, but uses the inherited socket for this listener and address if there is one. */
  readonly listen: Listen = async (server, name, where) => {
    const inherited = this.#inherited.get(name);
    if (inherited === undefined || !isFor(inherited, where)) {
      const at = await listenAt(server, where);
      this.#open.push({ name, server, configured: where });
      return at;
    }
    this.#inherited.delete(name);
    const at = await listenAtDescriptor(server, inherited.descriptor).catch((error: Error) => {
      throw new Error(`cannot listen at the inherited socket of ${name}: ${systemErrorReason(error)}`);
    });
    this.#open.push({ name, server, configured: inherited.configured });
    return at;
  };

  get open(): readonly OpenSocket[] {
    return this.#open;
  }

  /**
   * Closes inherited sockets that no listener uses; their clients would wait forever. Call once
   * everything listens.
   */
  closeUnused(): void {
    for (const { descriptor } of this.#inherited.values()) closeSync(descriptor);
    this.#inherited.clear();
  }

  /**
   * Stops accepting here. A successor's copy of a socket stays open, and so do accepted
   * connections.
   */
  close(): void {
    // An HTTP server's own `close` would also end idle connections.
    for (const { server } of this.#open) Server.prototype.close.call(server);
  }
}

function isFor({ configured }: InheritedSocket, { address, port }: ListenAddress): boolean {
  return configured === undefined || (configured.address === address && configured.port === port);
}
