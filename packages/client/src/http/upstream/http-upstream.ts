// packages/client/http: one HTTP/1.1 server for every listener; requests of our own, the upgrade
// request, proxies on the way, header lists
import { Agent, type ClientRequestArgs } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { DEFAULT_DIAL_TIMEOUT_MS, type DialOptions, dial, type UpstreamEndpoint } from "../../net/dial.ts";
import { Http1UpstreamConnection, type IdlePool } from "./http1-upstream-connection.ts";

interface Http1PoolOptions {
  /** Most idle connections that are kept open. */
  readonly maxIdleConnections: number;
  /**
   * An idle connection is closed after this many milliseconds, or when the upstream promised to close
   * it, if that is earlier.
   */
  readonly idleTimeoutMs: number;
  /**
   * A connection is closed after this many exchanges, so that no peer's state lives forever and new
   * endpoints get their share.
   */
  readonly maxExchangesPerConnection: number;
  connect(): Promise<Socket>;
}

/** How often idle connections are checked: they may outlive their time by this much. */
const SWEEP_MS = 1_000;

/** One upstream's idle connections. The most recently used is taken first, so that surplus ones expire. */
class Http1UpstreamPool implements IdlePool {
  readonly #options: Http1PoolOptions;
  readonly #idle: Http1UpstreamConnection[] = [];
  #sweep: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: Http1PoolOptions) {
    this.#options = options;
  }

  get idleConnections(): number {
    return this.#idle.length;
  }

  /** Takes an idle connection, if there is one. The caller must call `finish` or `destroy` on it. */
  take(): Http1UpstreamConnection | undefined {
    return this.#idle.pop();
  }

  /** Opens a new connection. Throws as `connect` does. */
  async dial(): Promise<Http1UpstreamConnection> {
    return new Http1UpstreamConnection(await this.#options.connect(), this);
  }

  keep(connection: Http1UpstreamConnection): void {
    const { maxIdleConnections, maxExchangesPerConnection, idleTimeoutMs } = this.#options;
    const lifeMs = Math.min(idleTimeoutMs, connection.promisedMs ?? idleTimeoutMs);
    const isWanted =
      !this.#isClosed &&
      lifeMs > 0 &&
      this.#idle.length < maxIdleConnections &&
      connection.exchanges < maxExchangesPerConnection;
    if (!isWanted) {
      connection.destroy();
      return;
    }
    connection.expiresAtMs = performance.now() + lifeMs;
    this.#idle.push(connection);
    this.#sweep ??= setInterval(() => this.#closeExpired(), SWEEP_MS).unref();
  }

  forget(connection: Http1UpstreamConnection): void {
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
    if (this.#idle.length === 0) this.#stopSweeping();
  }

  /** Closes idle connections now, and busy ones after their exchange. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle.splice(0)) connection.destroy();
    this.#stopSweeping();
  }

  #closeExpired(): void {
    const nowMs = performance.now();
    for (const connection of [...this.#idle]) {
      if (connection.expiresAtMs <= nowMs) connection.destroy();
    }
  }

  #stopSweeping(): void {
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }
}

interface HttpUpstreamOptions {
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
