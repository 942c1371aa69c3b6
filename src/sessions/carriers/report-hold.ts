import type { Duplex } from "node:stream";
import { queuedBytesOf } from "@sluice/client/internal/net/linger";
import type { KeptReport, PassedEnd } from "../decoders/pass-through-decoder.ts";
import type { SessionLifecycle } from "../lifecycle.ts";
import type { EndObserver } from "../observers/end-observer.ts";

/**
 * Writes what a node sends to the client, but withholds its report of a command's end, and all that
 * follows, while an observer delays it. The node is not read meanwhile.
 */
export class ReportHold implements KeptReport {
  /** False: no observer of this session delays its report. */
  readonly isEnabled: boolean;
  /** The kernel has taken the node's result. */
  isResultSent = false;
  readonly #life: SessionLifecycle;
  readonly #downstream: Duplex;
  readonly #ends: EndObserver | undefined;
  readonly #onPassed: () => void;
  #kept: Uint8Array[] = [];
  hasBegun = false;
  #passed: PassedEnd | undefined;
  #isKeeping = false;
  #hasPassed = false;
  #isResultWritten = false;
  #release: (() => void) | undefined;
  #next: (() => void) | undefined;

  constructor(
    life: SessionLifecycle,
    downstream: Duplex,
    ends: EndObserver | undefined,
    onPassed: () => void,
  ) {
    this.#life = life;
    this.#downstream = downstream;
    this.#ends = ends;
    this.#onPassed = onPassed;
    this.isEnabled = life.observers.awaitsReport;
  }

  begin(passed?: PassedEnd): void {
    if (!this.isEnabled || this.#life.isOver) return;
    this.#passed ??= passed;
    this.hasBegun = this.#isKeeping = true;
  }

  get kept(): PassedEnd | undefined {
    return this.isWithheld ? this.#passed : undefined;
  }

  /** Nothing of the node's report has reached the client. */
  get isWithheld(): boolean {
    return this.#isKeeping && !this.#hasPassed;
  }

  get isWaiting(): boolean {
    return this.#release !== undefined;
  }

  /** The client has the node's result, or the kernel has taken all that was left to send. */
  get isResultTaken(): boolean {
    const isAllPassed = this.#ends?.hasResult === true && !this.isWaiting;
    return this.isResultSent || (isAllPassed && queuedBytesOf(this.#downstream) === 0);
  }

  /** Call before each chunk of the node. Output after the report waits with the report. */
  chunkBegins(): void {
    if (this.hasBegun) this.begin();
  }

  pass(bytes: Uint8Array): void {
    if (this.#isKeeping) this.#kept.push(Uint8Array.from(bytes));
    else this.#write(bytes);
  }

  /** Call once observers have seen the chunk: passes what is kept as soon as they allow it. */
  chunkEnds(): void {
    if (!this.#isKeeping || this.isWaiting || this.#life.isOver) return;
    this.#release = this.#life.hold("node");
    this.#life.passReport(() => this.#pass());
  }

  /**
   * True: calls `next` once observers allow it. False: nothing delays the node's end. An end
   * without a report counts as a report: some versions know no other success.
   */
  delays(next: () => void): boolean {
    if (!this.hasBegun) this.begin();
    this.chunkEnds();
    if (this.isWaiting) this.#next ??= next;
    return this.isWaiting;
  }

  drop(): void {
    this.#kept = [];
    this.#isKeeping = false;
    this.#next = undefined;
    this.#release?.();
    this.#release = undefined;
  }

  #pass(): void {
    const [bytes, next] = [Buffer.concat(this.#kept), this.#next];
    this.#hasPassed = true;
    this.drop();
    if (bytes.byteLength > 0) this.#write(bytes);
    this.#onPassed();
    next?.();
  }

  #write(bytes: Uint8Array): void {
    if (!this.#downstream.writable) return;
    if (this.#isResultWritten || this.#ends?.hasResult !== true) {
      this.#downstream.write(bytes);
      return;
    }
    this.#isResultWritten = true;
    this.#downstream.write(bytes, (error) => {
      this.isResultSent = !error;
    });
  }
}
