import { closeSync } from "node:fs";
import { Server } from "node:net";
import { type Listen, type ListenAddress, listenAt, listenAtDescriptor } from "./listen.ts";

/** A listening socket that this process was started with. */
export interface InheritedSocket {
  readonly descriptor: number;
  /** Where its listener was configured to be; absent: the socket is the listener's, whatever the configuration has. */
  readonly configured?: ListenAddress | undefined;
}

interface OpenSocket {
  readonly name: string;
  readonly server: Server;
  readonly configured: ListenAddress | undefined;
}

/** The listening sockets of this program by listener: some inherited, the others its own. A successor inherits all of them. */
export class ListeningSockets {
  readonly #inherited: Map<string, InheritedSocket>;
  readonly #open: OpenSocket[] = [];

  constructor(inherited: ReadonlyMap<string, InheritedSocket> = new Map()) {
    this.#inherited = new Map(inherited);
  }

  /** As `listenAt`; at the inherited socket, where there is one for this listener and place. */
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

  /** Closes inherited sockets that no listener has taken: else their clients would wait for ever. To be called when all listen. */
  closeUnused(): void {
    for (const { descriptor } of this.#inherited.values()) closeSync(descriptor);
    this.#inherited.clear();
  }

  /** Accepts nothing more. A socket that a successor has stays open there, and so do accepted connections here. */
  close(): void {
    // An HTTP server's own `close` also ends idle connections.
    for (const { server } of this.#open) Server.prototype.close.call(server);
  }
}

function isFor({ configured }: InheritedSocket, { address, port }: ListenAddress): boolean {
  return configured === undefined || (configured.address === address && configured.port === port);
}
