import type { Socket } from "node:net";
import { finishAndLinger, type LingerTimes } from "@sluice/client/internal/net/linger";
import type { SessionClock } from "@sluice/client/internal/net/session-clock";
import type { Logger } from "../../observability/logger.ts";

/** A worker, as the dispatcher sees it. */
export interface Recipient {
  /** False while the worker starts, and after it has died. */
  readonly isTaking: boolean;
  readonly sessions: number;
  /**
   * Sends the connection. The socket stays open here until the worker confirms it
   * (`ConnectionDispatcher.received`). Calls `onLost` if it cannot be sent.
   */
  take(name: string, id: number, socket: Socket, onLost: () => void): void;
}

interface ConnectionDispatcherOptions {
  readonly recipients: () => readonly Recipient[];
  /** The limit of open connections from one address to one listener, over all workers. */
  readonly maxConnectionsPerAddress: number;
  /** The network under which a listener counts an address; undefined: it is not counted. */
  readonly networkOf: (address: string, listener: string) => string | undefined;
  onRefused(): void;
  /** True for a listener whose clients begin with TLS. */
  readonly isTls: (listener: string) => boolean;
  /** How long refused connections stay open after their answer. */
  readonly lingerTimes: LingerTimes;
  readonly clock: SessionClock;
  readonly logger: Logger;
}

interface Accepted {
  readonly name: string;
  readonly socket: Socket;
  readonly network: string | undefined;
  /** Runs while the connection waits for a worker. */
  timer?: NodeJS.Timeout;
}

interface Handed {
  readonly recipient: Recipient;
  readonly network: string | undefined;
  /** Set until the worker confirms the connection. */
  onItsWay?: Accepted | undefined;
  /** The primary's copy of a confirmed connection. */
  kept?: Socket | undefined;
}

/**
 * Copies of workers' connections, so that the primary can reset those of a killed worker. Past it
 * their clients see FIN, which SPDY takes for a proper end.
 */
const MAX_KEPT_CONNECTIONS = 4_096;

/**
 * Connections that wait while no worker can take them; about a moment's worth. Past it they are
 * closed.
 */
const MAX_WAITING_CONNECTIONS = 1_024;

/**
 * How long a connection waits for a worker; one starts in a second or two. Past it the client gets
 * 503 with Retry-After, or TLS' alert internal_error, and the connection is closed.
 */
const MAX_WAIT_FOR_WORKER_MS = 10_000;

const NO_WORKER = "no worker could take the connection in time, please try again later\n";
const NO_WORKER_ANSWER = [
  "HTTP/1.1 503 Service Unavailable",
  "Content-Type: text/plain; charset=utf-8",
  `Content-Length: ${NO_WORKER.length}`,
  "Retry-After: 1",
  "Connection: close",
  "",
  NO_WORKER,
].join("\r\n");
/** A fatal alert, internal_error (RFC 8446 section 6). Before keys are agreed it is sent in clear. */
const NO_WORKER_ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 80]);

/**
 * Gives each connection to the worker with the fewest sessions and connections (docs/workers.md).
 * With round robin, if clients open one connection for a request and then one for the session, one
 * of two workers would get all sessions.
 */
export class ConnectionDispatcher {
  readonly #options: ConnectionDispatcherOptions;
  readonly #handed = new Map<number, Handed>();
  readonly #openOf = new Map<Recipient, number>();
  readonly #countOf = new Map<string, number>();
  readonly #waiting = new Set<Accepted>();
  readonly #lastTurn = new Map<Recipient, number>();
  #lastId = 0;
  #kept = 0;

  constructor(options: ConnectionDispatcherOptions) {
    this.#options = options;
  }

  /** Dispatches a connection that the listener `name` has accepted and not read. */
  accept(name: string, socket: Socket): void {
    socket.on("error", () => {});
    const network = this.#networkOf(name, socket);
    if (network !== undefined) {
      const count = (this.#countOf.get(network) ?? 0) + 1;
      if (count > this.#options.maxConnectionsPerAddress) {
        this.#options.onRefused();
        socket.destroy();
        return;
      }
      this.#countOf.set(network, count);
    }
    this.#give({ name, socket, network });
  }

  /**
   * The worker has the connection but has not read from it yet; from now on the connection ends
   * with the worker.
   */
  received(id: number): void {
    const handed = this.#handed.get(id);
    const socket = handed?.onItsWay?.socket;
    if (handed === undefined || socket === undefined) return;
    handed.onItsWay = undefined;
    if (this.#kept < MAX_KEPT_CONNECTIONS) {
      this.#kept += 1;
      handed.kept = socket;
    } else {
      // Closes our copy; the worker's stays open.
      socket.destroy();
    }
  }

  /** These connections have closed and no longer count. */
  closed(ids: readonly number[]): void {
    for (const id of ids) {
      const handed = this.#handed.get(id);
      if (handed === undefined) continue;
      handed.onItsWay?.socket.destroy();
      this.#dropCopy(handed, false);
      this.#handed.delete(id);
      add(this.#openOf, handed.recipient, -1);
      if (handed.network !== undefined) add(this.#countOf, handed.network, -1);
    }
  }

  /**
   * A worker has died with its connections; unconfirmed ones go to other workers. `isCrash`: the
   * worker did not end its connections, so they are reset: their clients must not take the output
   * for complete.
   */
  forget(recipient: Recipient, isCrash = false): void {
    for (const [id, handed] of [...this.#handed]) {
      if (handed.recipient !== recipient) continue;
      this.#dropCopy(handed, isCrash);
      this.#takeBack(id);
    }
    this.#openOf.delete(recipient);
    this.#lastTurn.delete(recipient);
  }

  #dropCopy(handed: Handed, isCrash: boolean): void {
    if (handed.kept === undefined) return;
    this.#kept -= 1;
    if (isCrash) handed.kept.resetAndDestroy();
    else handed.kept.destroy();
    handed.kept = undefined;
  }

  /** A worker accepts connections again: dispatches those that waited. */
  resume(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const accepted of waiting) {
      clearTimeout(accepted.timer);
      this.#give(accepted);
    }
  }

  openOf(recipient: Recipient): number {
    return this.#openOf.get(recipient) ?? 0;
  }

  #give(accepted: Accepted): void {
    const { name, socket, network } = accepted;
    const recipient = this.#leastLoaded();
    if (socket.destroyed || (recipient === undefined && this.#waiting.size >= MAX_WAITING_CONNECTIONS)) {
      socket.destroy();
      if (network !== undefined) add(this.#countOf, network, -1);
      return;
    }
    if (recipient === undefined) {
      this.#waiting.add(accepted);
      accepted.timer = setTimeout(() => this.#refuse(accepted), MAX_WAIT_FOR_WORKER_MS).unref();
      return;
    }
    this.#lastId += 1;
    const id = this.#lastId;
    const handed: Handed = { recipient, network, onItsWay: accepted };
    this.#handed.set(id, handed);
    this.#lastTurn.set(recipient, id);
    add(this.#openOf, recipient, 1);
    recipient.take(name, id, socket, () => this.#takeBack(id));
  }

  /** No worker took the connection in time. Nothing was read yet, so this answer is its first message. */
  #refuse(accepted: Accepted): void {
    const { name, socket, network } = accepted;
    this.#waiting.delete(accepted);
    const { clock, isTls, lingerTimes, logger } = this.#options;
    logger.warn({ listener: name }, "no worker took a connection in time");
    if (network !== undefined) socket.once("close", () => add(this.#countOf, network, -1));
    socket.write(isTls(name) ? NO_WORKER_ALERT : NO_WORKER_ANSWER);
    finishAndLinger(socket, lingerTimes, clock);
  }

  #takeBack(id: number): void {
    const handed = this.#handed.get(id);
    const accepted = handed?.onItsWay;
    if (handed !== undefined) handed.onItsWay = undefined;
    this.closed([id]);
    if (accepted === undefined) return;
    this.#options.logger.warn({ listener: accepted.name }, "a connection could not be handed over");
    if (accepted.network !== undefined) add(this.#countOf, accepted.network, 1);
    // Retries in a later tick: a worker that just failed to take it may still seem alive in this
    // one.
    setImmediate(() => this.#give(accepted));
  }

  #leastLoaded(): Recipient | undefined {
    let least: Recipient | undefined;
    let leastLoad = Number.POSITIVE_INFINITY;
    for (const recipient of this.#options.recipients()) {
      if (!recipient.isTaking) continue;
      const load = recipient.sessions + this.openOf(recipient);
      const isLess =
        load < leastLoad || (load === leastLoad && this.#turnOf(recipient) < this.#turnOf(least));
      if (!isLess) continue;
      [least, leastLoad] = [recipient, load];
    }
    return least;
  }

  #turnOf(recipient: Recipient | undefined): number {
    return recipient === undefined ? 0 : (this.#lastTurn.get(recipient) ?? 0);
  }

  #networkOf(name: string, socket: Socket): string | undefined {
    const network = this.#options.networkOf(socket.remoteAddress ?? "", name);
    return network === undefined ? undefined : `${name} ${network}`;
  }
}

function add<Key>(counts: Map<Key, number>, key: Key, difference: number): void {
  const count = (counts.get(key) ?? 0) + difference;
  if (count <= 0) counts.delete(key);
  else counts.set(key, count);
}
