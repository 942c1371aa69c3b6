import { closeSync } from "node:fs";
import { Server } from "node:net";
import { type Listen, type ListenAddress, listenAt, listenAtDescriptor } from "./listen.ts";

/** A listening socket that this process inherited. */
export interface InheritedSocket {
  readonly descriptor: number;
  /**
   * The configured address that the socket was opened for; absent: the socket serves its listener
   * whatever its address.
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
      throw new Error(`cannot listen at the inherited socket of ${name}: ${error.message}`);
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
   * Stops accepting. A socket that a successor has stays open there, and accepted connections stay open
   * here.
   */
  close(): void {
    // An HTTP server's own `close` would also end idle connections.
    for (const { server } of this.#open) Server.prototype.close.call(server);
  }
}

function isFor({ configured }: InheritedSocket, { address, port }: ListenAddress): boolean {
  return configured === undefined || (configured.address === address && configured.port === port);
}
