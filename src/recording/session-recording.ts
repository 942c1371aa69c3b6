import { endOf, type SessionEnd } from "@sluice/client/internal/sessions/session-end";
import type { CommandStatus } from "@sluice/protocols/remotecommand";
import type { Recording, RecordingRule } from "../config/sections/recording.ts";
import type { RecordingMetrics } from "../observability/recording-metrics.ts";
import type { ObservedSession, Side } from "../sessions/observers/session-observer.ts";
import type { SessionInfo } from "../sessions/session-info.ts";
import { factsOf } from "./recorded-facts.ts";
import type { RecordingQueue } from "./thread/recording-queue.ts";
import type { RecordedEnd } from "./thread/thread-messages.ts";

interface SessionRecordingOptions {
  readonly rule: RecordingRule;
  readonly bounds: Pick<Recording, "maxOutputBytes" | "maxHoldMs">;
  readonly metrics: RecordingMetrics;
  /** Adds an annotation to the session's final audit event. */
  readonly annotate: (name: string, value: string) => void;
  /** Writes an audit event while the session runs, with its annotations so far. */
  readonly recordAudit: () => void;
  /** Called once the recording was written whole. */
  readonly onWhole: () => void;
  /** Gets why output cannot be recorded now. */
  readonly onUnwritten: (problem: string) => void;
  /** Gets why the recording could not be finished. */
  readonly onUnfinished: (problem: string) => void;
}

/**
 * One session's recording. Holds the session while the queue is full; after `maxHold` ends it if its
 * rule requires the recording.
 */
export class SessionRecording {
  readonly queue: RecordingQueue;
  readonly isRequired: boolean;
  /** The session's end because its recording failed; absent if its rule lets the session continue. */
  failure: SessionEnd | undefined;
  info: SessionInfo | undefined;
  readonly #options: SessionRecordingOptions;
  readonly #startedMs = performance.now();
  #session: ObservedSession | undefined;
  #releases: (() => void)[] = [];
  #heldMs = 0;
  #lostBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(queue: RecordingQueue, options: SessionRecordingOptions) {
    this.queue = queue;
    this.#options = options;
    this.isRequired = options.rule.recordOnFailure === "refuse";
  }

  /** Milliseconds since the session's start. */
  get nowMs(): number {
    return performance.now() - this.#startedMs;
  }

  /** Calls `onRoom` whenever the queue has room again. */
  begin(session: ObservedSession, onRoom: () => void = () => {}): void {
    this.#session = session;
    const { info } = session;
    if (info === undefined) return;
    this.info = info;
    this.#options.annotate("sluice.dev/recording", this.queue.file);
    const { rule, bounds } = this.#options;
    this.queue.begin(
      { facts: factsOf(info, rule), maxOutputBytes: bounds.maxOutputBytes },
      {
        onRoom: () => {
          this.release();
          onRoom();
        },
        onFailed: (problem) => {
          this.#options.metrics.writeFailed();
          this.fail(`the recording cannot be written: ${problem}`, problem);
        },
        onGap: (bytes) => this.noteGap(bytes),
        onChunk: (chunk, hash) => {
          this.#options.annotate("sluice.dev/recording-chunk", `${chunk} ${hash}`);
          this.#options.recordAudit();
        },
      },
    );
  }

  /** Stops reading from both sides until the queue has room or `maxHold` has passed. */
  hold(): void {
    if (this.#releases.length > 0 || this.#session === undefined) return;
    this.#heldMs = performance.now();
    const session = this.#session;
    this.#releases = [session.hold("node"), session.hold("client")];
    const { maxHoldMs } = this.#options.bounds;
    this.#timer = setTimeout(() => {
      this.fail(`the recording was not written for ${maxHoldMs / 1_000} s`);
      this.release();
    }, maxHoldMs);
  }

  release(): void {
    clearTimeout(this.#timer);
    if (this.#releases.length === 0) return;
    this.#options.metrics.held((performance.now() - this.#heldMs) / 1_000);
    for (const release of this.#releases.splice(0)) release();
  }

  /** Ends the session if its rule requires the recording. `problem`: the message for operators. */
  fail(message: string, problem: string = message): SessionEnd | undefined {
    if (this.failure === undefined) this.#options.onUnwritten(problem);
    if (!this.isRequired) return undefined;
    if (this.failure === undefined) {
      const status = failedStatus(message);
      this.failure = endOf("recording-failed", message, status);
      this.#session?.cut("recording-failed", message, status);
    }
    return this.failure;
  }

  undecodable(side: Side, message: string): SessionEnd | undefined {
    return this.fail(`the recording cannot continue: the ${side} cannot be decoded (${message})`);
  }

  /**
   * Settles when all output so far is in the recording's file, or when the session was ended because it
   * is not. Undefined if there is nothing to wait for.
   */
  written(): Promise<void> | undefined {
    if (!this.isRequired || this.failure !== undefined || this.queue.isWritten) return undefined;
    const { maxHoldMs } = this.#options.bounds;
    let timer: NodeJS.Timeout | undefined;
    const isLate = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        this.fail(`the recording was not written for ${maxHoldMs / 1_000} s`);
        resolve();
      }, maxHoldMs);
    });
    return Promise.race([this.queue.write(), isLate]).finally(() => clearTimeout(timer));
  }

  noteGap(bytes: number): void {
    this.#lostBytes += bytes;
    this.#options.metrics.gap();
    this.#options.annotate("sluice.dev/recording-lost-bytes", String(this.#lostBytes));
  }

  /** Resolves when the recording is on the disk or has failed. */
  async end(end: RecordedEnd, recordedBytes: number): Promise<void> {
    this.release();
    if (this.info === undefined) {
      this.queue.discard();
      return;
    }
    const { metrics, annotate, onWhole, onUnfinished } = this.#options;
    try {
      const { hash, key, gaps } = await this.queue.end(this.nowMs, end);
      annotate("sluice.dev/recording-head", `${hash} ${key}`);
      if (gaps > 0) annotate("sluice.dev/recording-gaps", String(gaps));
      metrics.ended(this.failure === undefined ? "written" : "failed");
      if (this.failure === undefined && gaps === 0) onWhole();
    } catch (error) {
      const problem = (error as Error).message;
      annotate("sluice.dev/recording-failed", problem);
      metrics.ended("failed");
      onUnfinished(problem);
    }
    // The thread reports the last gap with the end.
    metrics.bytes(recordedBytes, end.countedBytes, this.#lostBytes);
  }
}

function failedStatus(message: string): CommandStatus {
  return {
    metadata: {},
    status: "Failure",
    reason: "ServiceUnavailable",
    code: 503,
    message,
    details: { causes: [{ reason: "sluice.dev/SessionEnded", message: "recording-failed" }] },
  };
}
