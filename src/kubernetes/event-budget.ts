/** client-go's limit for each object: a burst of this many Events, then one per refill. */
export const MAX_BURST_EVENTS = 25;
export const EVENT_REFILL_MS = 5 * 60_000;
/** Objects with a remembered budget; the least recently used one is dropped. */
const MAX_BUDGETED_OBJECTS = 4_096;

/** Limits how many Events each object may have. */
export class EventBudget {
  readonly #budgets = new Map<string, { readonly tokens: number; readonly atMs: number }>();

  /** False if the object has used up its Events; a new one is allowed each `EVENT_REFILL_MS`. */
  take(object: string, nowMs: number): boolean {
    const { tokens, atMs } = this.#budgets.get(object) ?? { tokens: MAX_BURST_EVENTS, atMs: nowMs };
    const refilled = Math.min(MAX_BURST_EVENTS, tokens + (nowMs - atMs) / EVENT_REFILL_MS);
    const isTaken = refilled >= 1;
    this.#budgets.delete(object);
    this.#budgets.set(object, { tokens: isTaken ? refilled - 1 : refilled, atMs: nowMs });
    const [oldest] = this.#budgets.size > MAX_BUDGETED_OBJECTS ? this.#budgets.keys() : [];
    if (oldest !== undefined) this.#budgets.delete(oldest);
    return isTaken;
  }
}
