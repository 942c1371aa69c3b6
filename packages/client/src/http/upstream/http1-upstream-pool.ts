import type { Socket } from "node:net";
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
export class Http1UpstreamPool implements IdlePool {
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
