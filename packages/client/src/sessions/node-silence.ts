/**
 * A node that sent something this recently may have closed its socket with output still queued. Any
 * byte sent to it then causes a reset, which discards that output (kubernetes/kubernetes#142376).
 */
const NODE_SILENCE_MS = 10_000;

/**
 * One tick adds at most this much silence. A process that was stopped or too busy to tick was also too
 * busy to read.
 */
const MAX_SILENCE_STEP_MS = 2_000;

/** Tracks whether a node's queue is empty, so that a heartbeat is safe. */
export class NodeSilence {
  #tickMs: number;
  #silentMs = 0;
  #heldMs = 0;
  #isHeld = false;
  #hasHeard = false;

  constructor(nowMs: number) {
    this.#tickMs = nowMs;
  }

  /** Bytes were read from the node. */
  heard(): void {
    this.#hasHeard = true;
  }

  /**
   * Call at each tick. `isHeldUp`: the gateway does not read the node's output, or the client does not
   * take it. A node's kernel that was held up may try again only after as long (RFC 9293, 3.8.6.1).
   */
  isQuiet(nowMs: number, isHeldUp: boolean): boolean {
    const stepMs = nowMs - this.#tickMs;
    this.#tickMs = nowMs;
    if (isHeldUp) this.#heldMs = this.#isHeld ? this.#heldMs + stepMs : stepMs;
    this.#isHeld = isHeldUp;
    if (isHeldUp || this.#hasHeard) this.#silentMs = 0;
    else this.#silentMs += Math.min(stepMs, MAX_SILENCE_STEP_MS);
    this.#hasHeard = false;
    if (this.#silentMs < Math.max(NODE_SILENCE_MS, this.#heldMs)) return false;
    this.#heldMs = 0;
    return true;
  }
}
