// packages/client/http: one HTTP/1.1 server for every listener; requests of our own, the upgrade
// request, proxies on the way, header lists

import { Agent, type ClientRequestArgs } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { DEFAULT_DIAL_TIMEOUT_MS, type DialOptions, dial, type UpstreamEndpoint } from "../../net/dial.ts";
import { Http1UpstreamPool } from "./http1-upstream-pool.ts";

export interface HttpUpstreamOptions {
  readonly endpoint: UpstreamEndpoint;
  readonly dialTimeoutMs?: number | undefined;
  /** Most concurrent connections for our own requests. Absent: one for each request. */
  readonly maxConnections?: number | undefined;
  /** Most idle connections that are kept open. */
  readonly maxIdleConnections?: number | undefined;
  /** An idle connection is closed after this long. */
  readonly idleTimeoutMs?: number | undefined;
  /** A forwarding connection is closed after this many exchanges. */
  readonly maxExchangesPerConnection?: number | undefined;
  /** Connects in another way than `dial`, e.g. through a proxy; the socket must be as from `dial`. */
  readonly connect?: ((endpoint: UpstreamEndpoint, options: DialOptions) => Promise<Socket>) | undefined;
}

/** Idle connections of one upstream. Past it a connection is closed after its response. */
const DEFAULT_MAX_IDLE_CONNECTIONS = 64;
/**
 * An idle connection of an upstream, or what its Keep-Alive promises less 1 s. Past it, it is
 * closed: servers often close at 60 s.
 */
const DEFAULT_IDLE_TIMEOUT_MS = 50_000;
/** Exchanges of one connection to an upstream. Past it, it is closed behind the last one. */
const DEFAULT_MAX_EXCHANGES_PER_CONNECTION = 100_000;

/**
 * One HTTP/1.1 upstream with its idle connections and its configuration's TLS identity. Create one for
 * each configuration, and close it with that. Callers' credentials travel in each request.
 */
export class HttpUpstream {
  readonly endpoint: UpstreamEndpoint;
  /** The `connect` option, for upgrades, whose connections are outside the pool. Absent: use `dial`. */
  readonly connect: ((options: DialOptions) => Promise<Socket>) | undefined;
  readonly #options: HttpUpstreamOptions;
  #pool: Http1UpstreamPool | undefined;
  #agent: Agent | undefined;
  /** The TLS identity's generation that the idle connections use. */
  #generation: number | undefined;

  constructor(options: HttpUpstreamOptions) {
    this.endpoint = options.endpoint;
    this.connect = options.connect?.bind(undefined, options.endpoint);
    this.#options = options;
    this.#generation = options.endpoint.tls?.generation;
  }

  /** The connections for forwarded requests. */
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

  /** Node's client for our own few requests, whose answers we read whole. */
  get agent(): Agent {
    this.#leaveOldIdentity();
    this.#agent ??= new DialingAgent(this.#options);
    return this.#agent;
  }

  /** Closes idle connections now, and busy ones after their exchange. */
  close(): void {
    this.pool.close();
    this.#agent?.destroy();
  }

  /** If certificates or trust were replaced, older connections serve no further exchange. */
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

/** Not half-open, so that a pool notices at once when the upstream closes an idle connection. */
function connectionTo(
  { endpoint, connect = dial, dialTimeoutMs = DEFAULT_DIAL_TIMEOUT_MS }: HttpUpstreamOptions,
  reusesReads: boolean,
): Promise<Socket> {
  return connect(endpoint, { dialTimeoutMs, allowHalfOpen: false, reusesReads });
}

/** Node's pool over our own dialler, so that plain requests and upgrades verify certificates alike. */
class DialingAgent extends Agent {
  readonly #options: HttpUpstreamOptions;
  #isClosed = false;

  constructor(options: HttpUpstreamOptions) {
    super({
      keepAlive: true,
      ...(options.maxConnections !== undefined && { maxSockets: options.maxConnections }),
      maxFreeSockets: options.maxIdleConnections ?? DEFAULT_MAX_IDLE_CONNECTIONS,
      // Node applies this timeout only to idle sockets. A busy connection may be silent for longer.
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
        // A proxy's answer leaves the socket paused, and Node's client does not resume it.
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

  /** After `destroy`, Node would still keep the connection of a request that ends. */
  override keepSocketAlive(socket: Duplex): boolean {
    return !this.#isClosed && keepSocketAlive.call(this, socket);
  }
}

/** Returns a boolean, which its type omits; false closes the connection. */
const { keepSocketAlive } = Agent.prototype as unknown as { keepSocketAlive(socket: Duplex): boolean };
