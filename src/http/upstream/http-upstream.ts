import { Agent, type ClientRequestArgs } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { DEFAULT_DIAL_TIMEOUT_MS, type DialOptions, dial, type UpstreamEndpoint } from "../../net/dial.ts";
import { Http1UpstreamPool } from "./http1-upstream-pool.ts";

export interface HttpUpstreamOptions {
  readonly endpoint: UpstreamEndpoint;
  readonly dialTimeoutMs?: number | undefined;
  /** Connections at a time of questions of our own. Absent: as many as there are questions. */
  readonly maxConnections?: number | undefined;
  /** Connections kept open while unused. */
  readonly maxIdleConnections?: number | undefined;
  /** An unused connection is closed after this long. */
  readonly idleTimeoutMs?: number | undefined;
  /** A forwarding connection is closed behind so many exchanges. */
  readonly maxExchangesPerConnection?: number | undefined;
  /** Connects to the endpoint in another way than `dial`, e.g. through a proxy; the socket is as `dial` gives it. */
  readonly connect?: ((endpoint: UpstreamEndpoint, options: DialOptions) => Promise<Socket>) | undefined;
}

export const DEFAULT_MAX_IDLE_CONNECTIONS = 64;
/** Below the 60 s that common servers and load balancers keep an idle connection. */
export const DEFAULT_IDLE_TIMEOUT_MS = 50_000;
export const DEFAULT_MAX_EXCHANGES_PER_CONNECTION = 100_000;

/**
 * One HTTP/1.1 upstream and its idle connections, all with this configuration's TLS identity: one for each configuration, closed with
 * it. Callers' credentials travel in each request.
 */
export class HttpUpstream {
  readonly endpoint: UpstreamEndpoint;
  /** As the option, for upgrades, whose connections are not of the pool. Absent: it is dialled. */
  readonly connect: ((options: DialOptions) => Promise<Socket>) | undefined;
  readonly #options: HttpUpstreamOptions;
  #pool: Http1UpstreamPool | undefined;
  #agent: Agent | undefined;
  /** Of the TLS identity that the idle connections have. */
  #generation: number | undefined;

  constructor(options: HttpUpstreamOptions) {
    this.endpoint = options.endpoint;
    this.connect = options.connect?.bind(undefined, options.endpoint);
    this.#options = options;
    this.#generation = options.endpoint.tls?.generation;
  }

  /** Where requests are forwarded over. */
  get pool(): Http1UpstreamPool {
    this.#leaveOldIdentity();
    const { maxIdleConnections, idleTimeoutMs, maxExchangesPerConnection } = this.#options;
    this.#pool ??= new Http1UpstreamPool({
      maxIdleConnections: maxIdleConnections ?? DEFAULT_MAX_IDLE_CONNECTIONS,
      idleTimeoutMs: idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS,
      maxExchangesPerConnection: maxExchangesPerConnection ?? DEFAULT_MAX_EXCHANGES_PER_CONNECTION,
      connect: () => connectionTo(this.#options, true),
    });
    return this.#pool;
  }

  /** For questions of our own, which Node's client asks: a few, whose answers are wanted whole. */
  get agent(): Agent {
    this.#leaveOldIdentity();
    this.#agent ??= new DialingAgent(this.#options);
    return this.#agent;
  }

  /** Closes idle connections now; those in use close when their exchange is over. */
  close(): void {
    this.pool.close();
    this.#agent?.destroy();
  }

  /** Certificates or trust were replaced: connections of before serve no further exchange. */
  #leaveOldIdentity(): void {
    const generation = this.#options.endpoint.tls?.generation;
    if (generation === this.#generation) return;
    this.#generation = generation;
    this.#pool?.close();
    this.#agent?.destroy();
    this.#pool = undefined;
    this.#agent = undefined;
  }
}

/** Not half-open: a pool must see at once that the upstream has closed an idle connection. */
function connectionTo(
  { endpoint, connect = dial, dialTimeoutMs = DEFAULT_DIAL_TIMEOUT_MS }: HttpUpstreamOptions,
  reusesReads: boolean,
): Promise<Socket> {
  return connect(endpoint, { dialTimeoutMs, allowHalfOpen: false, reusesReads });
}

/** Node's pool over our own dialler: plain requests and upgrades verify certificates by the same rules. */
class DialingAgent extends Agent {
  readonly #options: HttpUpstreamOptions;
  #isClosed = false;

  constructor(options: HttpUpstreamOptions) {
    super({
      keepAlive: true,
      ...(options.maxConnections !== undefined && { maxSockets: options.maxConnections }),
      maxFreeSockets: options.maxIdleConnections ?? DEFAULT_MAX_IDLE_CONNECTIONS,
      // Node destroys only sockets of the pool at this timeout; a connection in use may be silent for longer.
      timeout: options.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS,
      scheduling: "lifo",
    });
    this.#options = options;
  }

  override createConnection(
    _options: ClientRequestArgs,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    connectionTo(this.#options, false).then(
      (socket: Socket) => {
        // A proxy's answer was read from it, and it was paused then; Node's client reads only what flows.
        if (socket.isPaused()) socket.resume();
        callback?.(null, socket);
      },
      (error: Error) => callback?.(error, undefined as unknown as Duplex),
    );
    return undefined;
  }

  override destroy(): void {
    this.#isClosed = true;
    super.destroy();
  }

  /** Node.js keeps the connection of a request that ends after `destroy`, too. */
  override keepSocketAlive(socket: Duplex): boolean {
    return !this.#isClosed && keepSocketAlive.call(this, socket);
  }
}

/** It returns a boolean: a false one closes the connection. Its type says nothing. */
const { keepSocketAlive } = Agent.prototype as unknown as { keepSocketAlive(socket: Duplex): boolean };
