import { DEFAULT_DIAL_TIMEOUT_MS, type UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import {
  Http2UpstreamConnection,
  type Http2UpstreamTimes,
  LearnedLimit,
} from "./http2-upstream-connection.ts";

/**
 * Requests that one client address may cancel in a burst at an h2c endpoint, and then
 * CANCELS_PER_SECOND. Past it the address uses other connections.
 */
const CANCELS_AT_ONCE = 100;
const CANCELS_PER_SECOND = 10;

/** Clients that are remembered. Beyond this, those whose last cancel is oldest are forgotten. */
const MAX_CLIENTS = 4_096;

interface Spent {
  cancels: number;
  atMs: number;
}

/**
 * Counts each client's recent cancels against its share. Backends close a connection with many
 * cancels, and with it other clients' requests.
 */
export class CancelShares {
  readonly #spent = new Map<string, Spent>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  cancelled(client: string): void {
    const cancels = this.#cancelsOf(client) + 1;
    // Keeps the map in order of each client's last cancel.
    this.#spent.delete(client);
    this.#spent.set(client, { cancels, atMs: this.#now() });
    if (this.#spent.size <= MAX_CLIENTS) return;
    const [oldest] = this.#spent.keys();
    if (oldest !== undefined) this.#spent.delete(oldest);
  }

  isSpent(client: string): boolean {
    return this.#spent.size > 0 && this.#cancelsOf(client) >= CANCELS_AT_ONCE;
  }

  #cancelsOf(client: string): number {
    const spent = this.#spent.get(client);
    if (spent === undefined) return 0;
    const left = spent.cancels - ((this.#now() - spent.atMs) / 1000) * CANCELS_PER_SECOND;
    if (left > 0) return left;
    this.#spent.delete(client);
    return 0;
  }
}

const HTTP2_UPSTREAM_TIMES: Http2UpstreamTimes = { silenceMs: 10_000, pingIntervalMs: 300_000 };

/**
 * Connections to one h2c endpoint, and as many again for clients past their share of cancels. Past
 * it the one with the fewest streams takes more.
 */
const MAX_HTTP2_CONNECTIONS = 16;

/**
 * Cancelled streams of one connection to an h2c backend; node:http2 and Go close it at 1,000. Past
 * it another connection opens.
 */
const MAX_CANCELLED_STREAMS = 400;

/** One HTTP/2 upstream with prior knowledge (h2c). All its exchanges share a few connections. */
export class Http2Upstream {
  readonly endpoint: UpstreamEndpoint;
  readonly #dialTimeoutMs: number;
  readonly #times: Http2UpstreamTimes;
  readonly #shares = new CancelShares();
  readonly #learned = new LearnedLimit();
  /**
   * Separate connections for clients within their share of cancels and for those beyond it, which then
   * harm only each other.
   */
  readonly #lanes: readonly [Lane, Lane] = [emptyLane(), emptyLane()];

  constructor(
    endpoint: UpstreamEndpoint,
    dialTimeoutMs = DEFAULT_DIAL_TIMEOUT_MS,
    times: Http2UpstreamTimes = HTTP2_UPSTREAM_TIMES,
  ) {
    this.endpoint = endpoint;
    this.#dialTimeoutMs = dialTimeoutMs;
    this.#times = times;
  }

  /**
   * Reserves a place for a stream of `client`; fill it with `request` or release it with `leave`. Throws
   * UpstreamError "dial-failed", or "malformed-response" if the backend does not speak HTTP/2.
   */
  async connection(client: string): Promise<Http2UpstreamConnection> {
    const lane = this.#laneOf(client);
    for (;;) {
      const free = freeOf(lane);
      if (free !== undefined) return free;
      lane.opening ??= this.#open(lane);
      await lane.opening;
    }
  }

  /** The same without a dial. Undefined: one is needed. */
  freeConnection(client: string): Http2UpstreamConnection | undefined {
    return freeOf(this.#laneOf(client));
  }

  #laneOf(client: string): Lane {
    return this.#lanes[this.#shares.isSpent(client) ? 1 : 0];
  }

  /** A client has cancelled a request in progress. */
  cancelled(client: string): void {
    this.#shares.cancelled(client);
  }

  /** Open streams continue. Each connection closes after its last one. */
  close(): void {
    const retireAll = ({ connections }: Lane): void => {
      for (const connection of connections.splice(0)) connection.retire();
    };
    for (const lane of this.#lanes) {
      retireAll(lane);
      void lane.opening?.then(
        () => retireAll(lane),
        () => {},
      );
    }
  }

  async #open(lane: Lane): Promise<void> {
    try {
      const opened = await Http2UpstreamConnection.open(
        this.endpoint,
        this.#dialTimeoutMs,
        this.#times,
        this.#learned,
      );
      lane.connections.push(opened);
    } finally {
      // The next exchange dials again.
      lane.opening = undefined;
    }
  }
}

interface Lane {
  readonly connections: Http2UpstreamConnection[];
  opening: Promise<void> | undefined;
}

function emptyLane(): Lane {
  return { connections: [], opening: undefined };
}

function usableOf({ connections }: Lane): readonly Http2UpstreamConnection[] {
  for (const connection of connections)
    if (connection.cancelled >= MAX_CANCELLED_STREAMS) connection.retire();
  if (connections.some(({ isRetired }) => isRetired))
    connections.splice(0, connections.length, ...connections.filter(({ isRetired }) => !isRetired));
  return connections;
}

/** Reserves a place on an open connection. */
function freeOf(lane: Lane): Http2UpstreamConnection | undefined {
  const usable = usableOf(lane);
  for (const connection of usable) if (!connection.isFull) return connection.reserve();
  return usable.length < MAX_HTTP2_CONNECTIONS ? undefined : leastLoaded(usable).reserve();
}

function leastLoaded(connections: readonly Http2UpstreamConnection[]): Http2UpstreamConnection {
  return connections.reduce((least, other) => (other.openStreams < least.openStreams ? other : least));
}
