import type { AdminSession } from "../admin/admin-server.ts";
import { PEER_PAGE_SESSIONS, type PeerSessions } from "./peer-protocol.ts";

/** How long a list waits for the request of its next page. Past it that page is of a new list. */
export const KEPT_LIST_MS = 5_000;
/** Lists that wait for their next page. Past it the oldest is dropped, and its next page is of a new one. */
export const MAX_KEPT_LISTS = 8;

type Page = Pick<PeerSessions, "sessions" | "next">;

interface KeptList {
  /** The sessions behind the last page, in the order of ids. */
  readonly rest: readonly AdminSession[];
  readonly timer: NodeJS.Timeout;
  readonly keptMs: number;
}

/**
 * A replica's sessions page by page, in the order of ids, so that sessions which begin or end
 * meanwhile move no other. A list is collected once, and its rest waits for the next page.
 */
export class SessionPages {
  readonly #collect: () => Promise<readonly AdminSession[]>;
  readonly #nowMs: () => number;
  /** By the id behind which the next page begins. */
  readonly #lists = new Map<string, KeptList>();

  constructor(
    collect: () => Promise<readonly AdminSession[]>,
    nowMs: () => number = () => performance.now(),
  ) {
    this.#collect = collect;
    this.#nowMs = nowMs;
  }

  /** How many lists wait for their next page. */
  get kept(): number {
    return this.#lists.size;
  }

  /** The page behind this id, "" for the first. `next`: the id behind which the one after it begins. */
  async pageBehind(after: string): Promise<Page> {
    const rest = this.#restBehind(after) ?? behind(await this.#collect(), after);
    const sessions = rest.slice(0, PEER_PAGE_SESSIONS);
    const next = rest.length > sessions.length ? sessions.at(-1)?.id : undefined;
    if (next !== undefined) this.#keep(next, rest.slice(PEER_PAGE_SESSIONS));
    return { sessions, next };
  }

  clear(): void {
    for (const next of [...this.#lists.keys()]) this.#drop(next);
  }

  #restBehind(after: string): readonly AdminSession[] | undefined {
    const list = this.#lists.get(after);
    this.#drop(after);
    return list !== undefined && this.#nowMs() - list.keptMs < KEPT_LIST_MS ? list.rest : undefined;
  }

  #keep(next: string, rest: readonly AdminSession[]): void {
    this.#drop(next);
    const [oldest] = this.#lists.keys();
    if (this.#lists.size >= MAX_KEPT_LISTS && oldest !== undefined) this.#drop(oldest);
    const timer = setTimeout(() => this.#drop(next), KEPT_LIST_MS).unref();
    this.#lists.set(next, { rest, timer, keptMs: this.#nowMs() });
  }

  #drop(next: string): void {
    clearTimeout(this.#lists.get(next)?.timer);
    this.#lists.delete(next);
  }
}

function behind(all: readonly AdminSession[], after: string): readonly AdminSession[] {
  return all.filter(({ id }) => id > after).sort((one, other) => (one.id < other.id ? -1 : 1));
}
