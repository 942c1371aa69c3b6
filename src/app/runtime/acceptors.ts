import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { Component } from "../../lifecycle/component.ts";
import { type Listen, type ListenAddress, stopAccepting } from "../../net/listen.ts";

/**
 * The gateway's listening sockets, in the primary. They only accept; the worker that gets the
 * connection reads its first byte.
 */
export class Acceptors implements Component {
  readonly #listen: Listen;
  readonly #onConnection: (name: string, socket: Socket) => void;
  readonly #servers = new Map<
    string,
    { readonly server: Server; readonly listening: Promise<ListenAddress> }
  >();

  constructor(listen: Listen, onConnection: (name: string, socket: Socket) => void) {
    this.#listen = listen;
    this.#onConnection = onConnection;
  }

  /**
   * Opens the listener for the first worker that asks; later workers get the same address. Rejects if
   * the address cannot be bound.
   */
  listen(name: string, where: ListenAddress): Promise<ListenAddress> {
    const known = this.#servers.get(name);
    if (known !== undefined) return known.listening;
    const server = createServer({ pauseOnConnect: true, allowHalfOpen: true }, (socket) =>
      this.#onConnection(name, socket),
    );
    const listening = this.#listen(server, name, where);
    this.#servers.set(name, { server, listening });
    return listening;
  }

  /** The address; undefined if this listener is not listening. */
  addressOf(name: string): ListenAddress | undefined {
    return (this.#servers.get(name)?.server.address() as AddressInfo | null) ?? undefined;
  }

  /** Stops accepting at the listeners whose names match. Accepted connections continue. */
  async close(isChosen: (name: string) => boolean): Promise<void> {
    const chosen = [...this.#servers].filter(([name]) => isChosen(name));
    await Promise.all(chosen.map(([, { server }]) => stopAccepting(server)));
  }

  stop(): void {
    for (const { server } of this.#servers.values()) server.close();
  }
}
