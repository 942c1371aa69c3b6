import { Worker } from "node:worker_threads";
import { ownProgram } from "@sluice/client/internal/config/version";
import { reportFault } from "@sluice/client/internal/observability/faults";
import type { ProbeHandler } from "../../api/probe-objects.ts";
import { type Cancellable, type Cancellation, cancellationFor } from "../probe-deadline.ts";
import { errored, type ProbeResult } from "../probe-result.ts";
import type { ProbeOptions, ProbeTarget } from "../probe-target.ts";
import { runProbe } from "../run-probe.ts";
import {
  described,
  type ThreadAnswer,
  type ThreadFault,
  type ThreadResult,
  type ThreadRun,
} from "./serialized-probe.ts";

interface ProbeThreadsOptions {
  /** The maximum number of threads. They start as the probe rate rises, and stay. 0: none. */
  readonly maxThreads: number;
  /** A thread ended by itself, or could not start. It is not replaced. */
  readonly onProblem: (error: unknown) => void;
  /** The probe rate in probes per second; see `PROBES_PER_THREAD`. */
  readonly probesPerThread?: number;
  /** Milliseconds, monotonic. */
  readonly now?: () => number;
  /** The compiled `probe-thread.ts`. */
  readonly program?: URL;
}

const RATE_WINDOW_MS = 1_000;

/**
 * Runs probes on this thread while they are few, and on other threads when they are many. Exec
 * probes always run here, because the runtime's client is here. Without threads, all probes do.
 */
export class ProbeThreads {
  readonly #options: ProbeThreadsOptions;
  readonly #threads: ProbeThread[] = [];
  #mayStart: number;
  #windowStartMs: number;
  #windowRuns = 0;

  constructor(options: ProbeThreadsOptions) {
    this.#options = options;
    this.#mayStart = options.maxThreads;
    this.#windowStartMs = this.#now();
  }

  /** Like `runProbe`, never rejects. A success on another thread carries no wire facts. */
  run(handler: ProbeHandler, target: ProbeTarget, options: ProbeOptions): Promise<ProbeResult> {
    if (handler.exec !== undefined) return runProbe(handler, target, options);
    this.#countRate();
    const thread = this.#idlest();
    return thread === undefined ? runProbe(handler, target, options) : thread.run(handler, target, options);
  }

  get threadCount(): number {
    return this.#threads.length;
  }

  /** Ends running probes with an error. */
  stop(): void {
    this.#mayStart = 0;
    for (const thread of this.#threads.splice(0)) thread.stop();
  }

  #now(): number {
    return this.#options.now?.() ?? performance.now();
  }

  #countRate(): void {
    this.#windowRuns++;
    const passedMs = this.#now() - this.#windowStartMs;
    if (passedMs < RATE_WINDOW_MS) return;
    const { maxThreads, probesPerThread = PROBES_PER_THREAD } = this.#options;
    const wanted = threadsFor((this.#windowRuns * 1_000) / passedMs, maxThreads, probesPerThread);
    this.#windowRuns = 0;
    this.#windowStartMs += passedMs;
    while (this.#threads.length < wanted && this.#mayStart > 0) this.#start();
  }

  #start(): void {
    this.#mayStart--;
    const { program = PROGRAM, onProblem } = this.#options;
    const thread: ProbeThread = new ProbeThread(program, (error) => {
      const index = this.#threads.indexOf(thread);
      if (index === -1) return;
      this.#threads.splice(index, 1);
      onProblem(error);
    });
    this.#threads.push(thread);
  }

  #idlest(): ProbeThread | undefined {
    let idlest = this.#threads[0];
    for (const thread of this.#threads) if (thread.runCount < (idlest?.runCount ?? 0)) idlest = thread;
    return idlest;
  }
}

const PROGRAM = ownProgram("probe-thread", import.meta.url);
const ENDED_TEXT = "the thread that probed has ended";

/** One thread and its running probes. Sends the probes of one turn in one message. */
class ProbeThread {
  readonly #worker: Worker;
  readonly #running = new Map<number, PendingRun>();
  #lastId = 0;
  #runs: ThreadRun[] = [];
  #cancelled: number[] = [];
  #isFlushDue = false;

  constructor(program: URL, onEnded: (error: unknown) => void) {
    this.#worker = new Worker(program);
    // An idle thread does not keep the process alive.
    this.#worker.unref();
    this.#worker.on("message", (message: ThreadAnswer | ThreadFault) => {
      if ("where" in message) reportFault(message.where, message.error);
      else this.#onAnswer(message);
    });
    let problem: unknown = new Error(ENDED_TEXT);
    this.#worker.on("error", (error) => {
      problem = error;
    });
    this.#worker.on("exit", () => {
      this.#failAll();
      onEnded(problem);
    });
  }

  get runCount(): number {
    return this.#running.size;
  }

  run(handler: ProbeHandler, target: ProbeTarget, options: ProbeOptions): Promise<ProbeResult> {
    const id = ++this.#lastId;
    this.#runs.push([id, described(handler, target, options)]);
    this.#flushLater();
    return new Promise((resolve) => {
      const cancellation = options.signal && cancellationFor(options.signal);
      this.#running.set(id, new PendingRun(resolve, cancellation, () => this.#cancel(id)));
    });
  }

  stop(): void {
    this.#failAll();
    void this.#worker.terminate();
  }

  #cancel(id: number): void {
    this.#cancelled.push(id);
    this.#flushLater();
  }

  #flushLater(): void {
    if (this.#isFlushDue) return;
    this.#isFlushDue = true;
    queueMicrotask(() => {
      this.#isFlushDue = false;
      this.#worker.postMessage({ runs: this.#runs, cancelled: this.#cancelled });
      this.#runs = [];
      this.#cancelled = [];
    });
  }

  #onAnswer(answer: ThreadAnswer): void {
    for (const result of answer) this.#settle(result[0], fromThreadResult(result));
  }

  #failAll(): void {
    for (const id of [...this.#running.keys()]) this.#settle(id, errored(ENDED_TEXT));
  }

  #settle(id: number, result: ProbeResult): void {
    const run = this.#running.get(id);
    if (run === undefined) return;
    this.#running.delete(id);
    run.settle(result);
  }
}

/** A probe that waits for a thread. */
class PendingRun implements Cancellable {
  readonly cancel: () => void;
  readonly #resolve: (result: ProbeResult) => void;
  readonly #cancellation: Cancellation | undefined;

  constructor(
    resolve: (result: ProbeResult) => void,
    cancellation: Cancellation | undefined,
    cancel: () => void,
  ) {
    this.#resolve = resolve;
    this.#cancellation = cancellation;
    this.cancel = cancel;
    cancellation?.add(this);
  }

  settle(result: ProbeResult): void {
    this.#cancellation?.delete(this);
    this.#resolve(result);
  }
}

/**
 * Probes a second. Below this a busy thread runs probes itself; above it, it hands its share to
 * other threads. An otherwise idle thread manages some 6,000 over HTTP.
 */
const PROBES_PER_THREAD = 2_000;

/** The number of extra threads for this rate: one per full `perThread`, `maxThreads` at most. */
export function threadsFor(probesPerSecond: number, maxThreads: number, perThread: number): number {
  return Math.min(maxThreads, Math.floor(probesPerSecond / perThread));
}

function fromThreadResult([, result, message, wire = {}, error]: ThreadResult): ProbeResult {
  return { result, message, wire, ...(error === undefined ? {} : { error }) };
}
