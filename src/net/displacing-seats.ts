interface DisplacingSeatsOptions {
  readonly seats: number;
  readonly seatsPerFlow: number;
}

interface SeatHolder {
  /** Called when the flow loses this seat to a flow that holds fewer. */
  readonly displace: () => void;
  /** Absent: always. */
  readonly isDisplaceable?: (() => boolean) | undefined;
}

/**
 * Seats without a time limit. If all are in use, the flow with the most loses its newest to a flow
 * with fewer, so no set of flows can keep others out (docs/decisions/0048-fair-shares.md).
 */
export class DisplacingSeats {
  readonly #options: DisplacingSeatsOptions;
  readonly #flows = new Map<string, Set<SeatHolder>>();
  #held = 0;

  constructor(options: DisplacingSeatsOptions) {
    this.#options = options;
  }

  get held(): number {
    return this.#held;
  }

  /** Flows that hold a seat. */
  get flows(): number {
    return this.#flows.size;
  }

  /** Returns a function that releases the seat, or undefined: the flow gets none now. */
  acquire(flow: string, holder: SeatHolder, mayDisplace = true): (() => void) | undefined {
    const { seats, seatsPerFlow } = this.#options;
    const own = this.#flows.get(flow)?.size ?? 0;
    if (own >= seatsPerFlow) return undefined;
    if (this.#held >= seats && !(mayDisplace && this.#displaceFor(own))) return undefined;
    const members = this.#flows.get(flow) ?? new Set();
    this.#flows.set(flow, members.add(holder));
    this.#held += 1;
    return () => this.#release(flow, holder);
  }

  /**
   * Takes the newest seat of the largest flow that can lose one. False if none has more than `own`
   * + 1 seats: taking one would not make the two more equal.
   */
  #displaceFor(own: number): boolean {
    let largest: [flow: string, newest: SeatHolder] | undefined;
    let most = own + 1;
    for (const [flow, members] of this.#flows) {
      if (members.size <= most) continue;
      const newest = [...members].findLast(({ isDisplaceable }) => isDisplaceable?.() !== false);
      if (newest === undefined) continue;
      most = members.size;
      largest = [flow, newest];
    }
    if (largest === undefined) return false;
    const [flow, newest] = largest;
    this.#release(flow, newest);
    newest.displace();
    return true;
  }

  #release(flow: string, holder: SeatHolder): void {
    const members = this.#flows.get(flow);
    if (members === undefined || !members.delete(holder)) return;
    this.#held -= 1;
    if (members.size === 0) this.#flows.delete(flow);
  }
}
