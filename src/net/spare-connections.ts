import type { Socket } from "node:net";
import type { DialOptions, UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import { IdleConnection } from "@sluice/client/internal/net/idle-connection";

/**
 * How long an unused connection is kept in reserve. Past it the connection is closed: kubelets wait
 * longer than this for a first request.
 */
const SPARE_MS = 10_000;

interface SpareConnectionsOptions {
  /** The most spare connections at once, one for each endpoint. */
  readonly max: number;
  readonly dial: (endpoint: UpstreamEndpoint, options: DialOptions) => Promise<Socket>;
  /** How long to keep one, in milliseconds (10,000). */
  readonly spareMs?: number | undefined;
}

/** Preconnects to endpoints that had a session, to save the next one the TCP and TLS handshakes. */
export class SpareConnections {
  readonly #max: number;
  readonly #spareMs: number;
  readonly #dial: SpareConnectionsOptions["dial"];
  /** Includes those that are still being dialled. */
  readonly #spares = new Map<string, IdleConnection>();

  constructor({ max, dial, spareMs = SPARE_MS }: SpareConnectionsOptions) {
    this.#spareMs = spareMs;
    this.#max = max;
    this.#dial = dial;
  }

  get size(): number {
    return this.#spares.size;
  }

  /**
   * Like the options' `dial`, for relayed connections. Before it returns a spare connection, which is
   * paused, it calls `onSpare`.
   */
  async connect(endpoint: UpstreamEndpoint, options: DialOptions, onSpare?: () => void): Promise<Socket> {
    const key = keyOf(endpoint);
    const spare = this.#spares.get(key)?.take();
    if (spare !== undefined) {
      this.#spares.delete(key);
      onSpare?.();
    }
    const socket = spare ?? (await this.#dial(endpoint, options));
    this.#preconnect(key, endpoint, options);
    return socket;
  }

  /** Ignores failures: the next session dials and reports them. */
  #preconnect(key: string, endpoint: UpstreamEndpoint, { dialTimeoutMs, reusesReads }: DialOptions): void {
    if (this.#spares.size >= this.#max || this.#spares.has(key)) return;
    const forget = (): void => void this.#spares.delete(key);
    const spare = new IdleConnection(this.#spareMs, forget);
    this.#spares.set(key, spare);
    this.#dial(endpoint, { dialTimeoutMs, reusesReads }).then((socket) => spare.put(socket), forget);
  }
}

/**
 * The key includes the names that the certificate was verified for, and the generation of our own
 * certificates.
 */
function keyOf({ host, port, serverName = "", commonName = "", tls }: UpstreamEndpoint): string {
  return JSON.stringify([host, port, serverName, commonName, tls?.generation]);
}
