import { once } from "node:events";
import { type AddressInfo, createServer, isIP, type Server, type Socket } from "node:net";
import { systemErrorText } from "./config/system-error.ts";
import type { ForwardedStream } from "./forwarded-stream.ts";
import { SessionError } from "./sessions/session-error.ts";

/** A local address and port that a forward listens on. */
export interface ListeningPort extends PortMapping {
  readonly address: string;
}

export interface PortForwarderOptions {
  /** Addresses to listen on. Default: "localhost", which means both of its addresses; one suffices. */
  readonly addresses?: readonly string[] | undefined;
  readonly ports: readonly PortMapping[];
  /** Local connections of each port; further ones are closed at once. Default: 1,000. */
  readonly maxConnections?: number | undefined;
  /** Opens a stream to the port for a local connection. */
  openStream(remotePort: number): Promise<ForwardedStream>;
  /** A local connection was accepted. Default: ignored. */
  onConnection?(port: ListeningPort): void;
  /**
   * A local connection failed, or another program listens on one of both addresses of "localhost";
   * the forward continues. Default: ignored.
   */
  onError?(port: ListeningPort, error: Error): void;
}

/** Local connections of one forwarded port. Past it a connection is closed at once. */
const DEFAULT_MAX_CONNECTIONS = 1_000;
/**
 * How long a local side that still sends may read earlier data after the pod's end closed. Past it,
 * it is reset.
 */
const RESET_DELAY_MS = 500;
/** How long a local side may stay open after the pod's end closed. Past it, it is closed. */
const CLOSE_WAIT_MS = 60_000;

/**
 * Listens locally and gives every connection its own stream. A failed connection does not end the
 * forward.
 */
export class PortForwarder {
  readonly #options: PortForwarderOptions;
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  constructor(options: PortForwarderOptions) {
    this.#options = options;
  }

  /**
   * Throws Error with client-go's message for an invalid address or a port in use; nothing listens
   * then.
   */
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

  /** Also ends every local connection. */
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
      const taken: [ListeningPort, Error][] = [];
      for (const address of group) {
        // Every address of a mapping gets the same port; for port 0, the first address's one.
        const local = mapping.local || listening[0]?.local || results[0]?.local || 0;
        try {
          results.push(await this.#listen(address, { ...mapping, local }));
        } catch (error) {
          problems.push(`unable to create listener: Error ${systemErrorText(error)}`);
          if ((error as NodeJS.ErrnoException).code === "EADDRINUSE")
            taken.push([{ ...mapping, local, address }, new Error(systemErrorText(error))]);
        }
      }
      if (results.length === 0) {
        const all = problems.join(" ");
        throw new Error(
          `unable to listen on port ${mapping.local}: Listeners failed to create with the following errors: [${all}]`,
        );
      }
      for (const [port, error] of taken) this.#options.onError?.(port, error);
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
      // As over TCP, a sender that writes after the pod's end gets a reset, behind all earlier
      // data.
      if (error instanceof SessionError && error.code === "remote-closed") {
        whenFinished(local, () => setTimeout(() => local.resetAndDestroy(), RESET_DELAY_MS).unref());
        return;
      }
      // Earlier data was passed on; the reset shows that later data is missing.
      local.resetAndDestroy();
      this.#options.onError?.(port, error);
    });
    // After the pod has ended both streams, the local side may stay open for CLOSE_WAIT_MS.
    remote.once("remoteClosed", () =>
      whenFinished(local, () => {
        const timer = setTimeout(() => local.destroy(), CLOSE_WAIT_MS).unref();
        local.once("close", () => clearTimeout(timer));
      }),
    );
    if (local.destroyed) remote.destroy();
    local.once("close", () => {
      // After both ends the stream closes by itself, once the server's error stream has ended.
      if (!remote.writableEnded || !remote.readableEnded) remote.destroy();
    });
    local.pipe(remote);
    remote.pipe(local);
  }
}

/** Calls back once all written data is with the operating system. */
function whenFinished(socket: Socket, then: () => void): void {
  if (socket.writableFinished) then();
  else socket.once("finish", then);
}

function addressesOf(address: string): readonly string[] {
  if (address === "localhost") return ["127.0.0.1", "::1"];
  if (address === "") throw new Error("you must specify at least 1 address");
  if (isIP(address) === 0) throw new Error(`${address} is not a valid IP`);
  return [address];
}

/** A local port, 0 for any free one, and the pod's port. */
export interface PortMapping {
  readonly local: number;
  readonly remote: number;
}

/**
 * Parses `80`, `8080:80`, `:80` or `0:80` as `kubectl port-forward` does. Throws Error for what it
 * refuses.
 */
export function parsePortArgument(text: string): PortMapping {
  const parts = text.split(":");
  const [first = "", second = first] = parts;
  if (parts.length > 2 || text === "") throw new Error(`invalid port format '${text}'`);
  const local = parts.length === 2 && first === "" ? 0 : parsePort("local", first);
  return { local, remote: parsePort("remote", second) };
}

function parsePort(side: "local" | "remote", text: string): number {
  const least = side === "local" ? 0 : 1;
  const port = /^\d+$/.test(text) ? Number(text) : -1;
  if (port >= least && port <= 0xffff) return port;
  throw new Error(`${side} port '${text}' must be a number from ${least} to 65535`);
}
