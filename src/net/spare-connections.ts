import type { Socket } from "node:net";
import type { DialOptions, UpstreamEndpoint } from "./dial.ts";
import { IdleConnection } from "./idle-connection.ts";

/** Kubelets, and servers made with Go's net/http, wait for a first request for longer. */
const SPARE_MS = 10_000;

export interface SpareConnectionsOptions {
  /** At most so many at once, one for each endpoint. */
  readonly max: number;
  readonly dial: (endpoint: UpstreamEndpoint, options: DialOptions) => Promise<Socket>;
  /** How long one is kept (10,000). */
  readonly spareMs?: number | undefined;
}

/** Preconnects to endpoints that had a session: the next one saves the TCP and TLS handshakes. */
export class SpareConnections {
  readonly #max: number;
  readonly #spareMs: number;
  readonly #dial: SpareConnectionsOptions["dial"];
  /** With those that are being dialled. */
  readonly #spares = new Map<string, IdleConnection>();

  constructor({ max, dial, spareMs = SPARE_MS }: SpareConnectionsOptions) {
    this.#spareMs = spareMs;
    this.#max = max;
    this.#dial = dial;
  }

  get size(): number {
    return this.#spares.size;
  }

  /** As the `dial` of the options, for connections that are relayed. A spare one is paused, and `onSpare` is called before. */
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

  /** A failure shows in the next session, which dials. */
  #preconnect(key: string, endpoint: UpstreamEndpoint, { dialTimeoutMs, reusesReads }: DialOptions): void {
    if (this.#spares.size >= this.#max || this.#spares.has(key)) return;
    const forget = (): void => void this.#spares.delete(key);
    const spare = new IdleConnection(this.#spareMs, forget);
    this.#spares.set(key, spare);
    this.#dial(endpoint, { dialTimeoutMs, reusesReads }).then((socket) => spare.put(socket), forget);
  }
}

/** The names that its certificate was verified for belong to it, and the certificates that it was opened with. */
function keyOf({ host, port, serverName = "", commonName = "", tls }: UpstreamEndpoint): string {
  return JSON.stringify([host, port, serverName, commonName, tls?.generation]);
}
