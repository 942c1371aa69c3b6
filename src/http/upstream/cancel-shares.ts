/**
 * Requests that one client address cancels at once at an h2c endpoint, and CANCELS_PER_SECOND more.
 * Past it, it uses other connections.
 */
export const CANCELS_AT_ONCE = 100;
export const CANCELS_PER_SECOND = 10;

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
