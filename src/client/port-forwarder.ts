import { once } from "node:events";
import { type AddressInfo, createServer, isIP, type Server, type Socket } from "node:net";
import type { ForwardedStream } from "./forwarded-stream.ts";
import type { PortMapping } from "./port-argument.ts";
import { SessionError } from "./session-error.ts";

/** Where a forward listens. */
export interface ListeningPort extends PortMapping {
  readonly address: string;
}

export interface PortForwarderOptions {
  /** Addresses to listen on; "localhost" is both of its addresses, of which one suffices. */
  readonly addresses?: readonly string[] | undefined;
  readonly ports: readonly PortMapping[];
  /** Local connections of one port at once (1,000); one more is closed at once. */
  readonly maxConnections?: number | undefined;
  /** A stream to that port, for each local connection. */
  openStream(remotePort: number): Promise<ForwardedStream>;
  /** A local connection came. */
  onConnection?(port: ListeningPort): void;
  /** A local connection failed; the forward goes on. */
  onError?(port: ListeningPort, error: Error): void;
}

const DEFAULT_MAX_CONNECTIONS = 1_000;
/** A local side that still sends has so long to read what came before it is reset. */
const RESET_DELAY_MS = 500;
/** What a local side may take to close after the pod's end of its connection has. */
const CLOSE_WAIT_MS = 60_000;

/** Listens locally and joins every connection with a stream of its own. No failure of one of them ends it. */
export class PortForwarder {
  readonly #options: PortForwarderOptions;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  constructor(options: PortForwarderOptions) {
    this.#options = options;
  }

  /** Throws Error, in client-go's words, when an address is none or a port is taken; nothing listens then. */
  async start(): Promise<ListeningPort[]> {
    const { addresses = ["localhost"], ports } = this.#options;
    const groups = addresses.map(addressesOf);
    const listening: ListeningPort[] = [];
    try {
      for (const mapping of ports) listening.push(...(await this.#listenOnAll(groups, mapping)));
      return listening;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** Ends every local connection, too. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(
      this.#servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))),
    );
  }

  async #listenOnAll(groups: readonly (readonly string[])[], mapping: PortMapping): Promise<ListeningPort[]> {
    const listening: ListeningPort[] = [];
    const problems: string[] = [];
    for (const group of groups) {
      const results: ListeningPort[] = [];
      for (const address of group) {
        // Every address of a mapping has the same port, the first one's where any will do.
        const local = mapping.local || listening[0]?.local || results[0]?.local || 0;
        try {
          results.push(await this.#listen(address, { ...mapping, local }));
        } catch (error) {
          problems.push(`unable to create listener: Error ${(error as Error).message}`);
        }
      }
      if (results.length === 0) {
        const all = problems.join(" ");
        throw new Error(
          `unable to listen on port ${mapping.local}: Listeners failed to create with the following errors: [${all}]`,
        );
      }
      listening.push(...results);
    }
    return listening;
  }

  async #listen(address: string, mapping: PortMapping): Promise<ListeningPort> {
    const server = createServer({ allowHalfOpen: true });
    server.maxConnections = this.#options.maxConnections ?? DEFAULT_MAX_CONNECTIONS;
    server.listen({ host: address, port: mapping.local, ipv6Only: isIP(address) === 6 });
    await once(server, "listening");
    this.#servers.push(server);
    const port = { address, local: (server.address() as AddressInfo).port, remote: mapping.remote };
    server.on("connection", (socket) => void this.#join(socket, port));
    return port;
  }

  async #join(local: Socket, port: ListeningPort): Promise<void> {
    this.#sockets.add(local);
    local.once("close", () => this.#sockets.delete(local));
    local.on("error", () => local.destroy());
    this.#options.onConnection?.(port);
    let remote: ForwardedStream;
    try {
      remote = await this.#options.openStream(port.remote);
    } catch (error) {
      local.resetAndDestroy();
      this.#options.onError?.(port, error as Error);
      return;
    }
    remote.on("error", (error: Error) => {
      // What was sent after the pod's end has nowhere to go: as over TCP, its sender gets a reset, behind all that came before.
      if (error instanceof SessionError && error.code === "remote-closed") {
        whenFinished(local, () => setTimeout(() => local.resetAndDestroy(), RESET_DELAY_MS).unref());
        return;
      }
      // What came before it has been passed on; the reset says that it was not all.
      local.resetAndDestroy();
      this.#options.onError?.(port, error);
    });
    // A local side that does not close after both ends of the pod keeps its place for so long.
    remote.once("remoteClosed", () =>
      whenFinished(local, () => {
        const timer = setTimeout(() => local.destroy(), CLOSE_WAIT_MS).unref();
        local.once("close", () => clearTimeout(timer));
      }),
    );
    if (local.destroyed) remote.destroy();
    local.once("close", () => {
      // After both ends it closes by itself, once the server has said whether anything failed.
      if (!remote.writableEnded || !remote.readableEnded) remote.destroy();
    });
    local.pipe(remote);
    remote.pipe(local);
  }
}

/** All that was written has been handed to the system. */
function whenFinished(socket: Socket, then: () => void): void {
  if (socket.writableFinished) then();
  else socket.once("finish", then);
}

function addressesOf(address: string): readonly string[] {
  if (address === "localhost") return ["127.0.0.1", "::1"];
  if (isIP(address) === 0) throw new Error(`${address} is not a valid IP`);
  return [address];
}
