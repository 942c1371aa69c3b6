/** client-go's bound for one object: so many Events at once, and then one in that time. */
export const MAX_BURST_EVENTS = 25;
export const EVENT_REFILL_MS = 5 * 60_000;
/** Objects whose budget is remembered; the one that was not heard for longest is forgotten. */
const MAX_BUDGETED_OBJECTS = 4_096;

/** Lets every object say so much and no more. */
export class EventBudget {
  readonly #budgets = new Map<string, { readonly tokens: number; readonly atMs: number }>();

  /** False: it has said enough for now. */
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
