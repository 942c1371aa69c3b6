import type { Socket } from "node:net";
import type { DialOptions, UpstreamEndpoint } from "./dial.ts";
import { KeptConnection } from "./kept-connection.ts";

/** Kubelets, and servers made with Go's net/http, wait for a first request for longer. */
const SPARE_MS = 10_000;

export interface SpareConnectionsOptions {
  /** At most so many at once, one for each endpoint. */
  readonly max: number;
  readonly dial: (endpoint: UpstreamEndpoint, options: DialOptions) => Promise<Socket>;
  /** How long one is kept (10,000). */
  readonly spareMs?: number | undefined;
}

/** A connection in reserve for each endpoint that was dialled a moment ago, its handshake over: the next session saves it. */
export class SpareConnections {
  readonly #max: number;
  readonly #spareMs: number;
  readonly #dial: SpareConnectionsOptions["dial"];
  /** Those that are still dialled included. */
  readonly #spares = new Map<string, KeptConnection>();

  constructor({ max, dial, spareMs = SPARE_MS }: SpareConnectionsOptions) {
    this.#spareMs = spareMs;
    this.#max = max;
    this.#dial = dial;
  }

  get size(): number {
    return this.#spares.size;
  }

  /** As the `dial` of the options, for connections that are relayed; one that was in reserve is paused. */
  async connect(endpoint: UpstreamEndpoint, options: DialOptions): Promise<Socket> {
    const key = keyOf(endpoint);
    const spare = this.#spares.get(key)?.take();
    if (spare !== undefined) this.#spares.delete(key);
    const socket = spare ?? (await this.#dial(endpoint, options));
    this.#prepare(key, endpoint, options);
    return socket;
  }

  /** A failure is reported by the next session, which dials. */
  #prepare(key: string, endpoint: UpstreamEndpoint, { dialTimeoutMs, reusesReads }: DialOptions): void {
    if (this.#spares.size >= this.#max || this.#spares.has(key)) return;
    const forget = (): void => void this.#spares.delete(key);
    const kept = new KeptConnection(this.#spareMs, forget);
    this.#spares.set(key, kept);
    this.#dial(endpoint, { dialTimeoutMs, reusesReads }).then((socket) => kept.keep(socket), forget);
  }
}

/** The names that its certificate was verified for belong to it. */
function keyOf({ host, port, serverName = "", commonName = "" }: UpstreamEndpoint): string {
  return JSON.stringify([host, port, serverName, commonName]);
}
