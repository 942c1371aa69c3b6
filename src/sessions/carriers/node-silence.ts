/**
 * A node that was read from within this time may have closed its socket behind queued output. Any byte
 * of ours is then answered with a reset, which takes that output back (kubernetes/kubernetes#142376).
 */
export const NODE_SILENCE_MS = 5_000;

/** Knows when a node has nothing queued, so that a heartbeat cannot harm. */
export class NodeSilence {
  #sinceMs: number;
  #hasHeard = false;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  /** Something was read from the node. */
  heard(): void {
    this.#hasHeard = true;
  }

  /** To be asked at every tick. `isHeldUp`: the node's output is not read, or not taken by the client. */
  isQuiet(nowMs: number, isHeldUp: boolean): boolean {
    if (this.#hasHeard || isHeldUp) this.#sinceMs = nowMs;
    this.#hasHeard = false;
    return nowMs - this.#sinceMs >= NODE_SILENCE_MS;
  }
}
