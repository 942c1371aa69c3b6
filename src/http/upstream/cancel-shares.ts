/** So many requests may one client address give up at once at one h2c endpoint, and so many more each second. */
export const CANCELS_AT_ONCE = 100;
export const CANCELS_PER_SECOND = 10;

/** Clients that are remembered; past it those that gave up least lately are forgotten. */
const MAX_CLIENTS = 4_096;

interface Spent {
  cancels: number;
  atMs: number;
}

/** How many requests each client has given up lately, against its share: backends close a connection for it, and with it what others have there. */
export class CancelShares {
  readonly #spent = new Map<string, Spent>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  cancelled(client: string): void {
    const cancels = this.#cancelsOf(client) + 1;
    // The last that gave up is the last of the map.
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
