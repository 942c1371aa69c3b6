/**
 * A node that sent something this recently may have closed its socket with output still queued. Any
 * byte sent to it then causes a reset, which discards that output (kubernetes/kubernetes#142376).
 */
export const NODE_SILENCE_MS = 5_000;

/** Tracks whether a node's queue is empty, so that a heartbeat is safe. */
export class NodeSilence {
  #sinceMs: number;
  #hasHeard = false;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /** Bytes were read from the node. */
  heard(): void {
    this.#hasHeard = true;
  }

  /**
   * Call at each tick. `isHeldUp`: the gateway does not read the node's output, or the client does not
   * take it.
   */
  isQuiet(nowMs: number, isHeldUp: boolean): boolean {
    if (this.#hasHeard || isHeldUp) this.#sinceMs = nowMs;
    this.#hasHeard = false;
    return nowMs - this.#sinceMs >= NODE_SILENCE_MS;
  }
}
