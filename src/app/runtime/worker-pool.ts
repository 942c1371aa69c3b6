import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import type { Logger } from "../../observability/logger.ts";
import type { ProbeUpdate } from "../../probes/probe-update.ts";
import type { PrimaryCalls, WorkerCalls, WorkerStart } from "./calls.ts";
import type { Recipient } from "./connection-dispatcher.ts";
import { type Handlers, Link } from "./link.ts";
import type { Watched } from "./prober-watchdog.ts";
import type { Prober } from "./shared-probing.ts";

/** A worker that ran this long started well; its next restart is immediate. */
const SETTLED_MS = 60_000;
const FIRST_MS = 100;
const MAX_MS = 30_000;

/**
 * The wait before a worker restarts: none after a long life, then 100 ms, doubled up to 30 s while
 * workers keep dying. A crash loop then costs little CPU and few log lines.
 */
export class RestartDelay {
  #shortLives = 0;

  /** `livedMs`: the time since the worker was ready; 0 if it never was. */
  nextBackoff(livedMs: number): number {
    if (livedMs >= SETTLED_MS) this.#shortLives = 0;
    const delayMs = this.#shortLives === 0 ? 0 : FIRST_MS * 2 ** (this.#shortLives - 1);
    this.#shortLives += 1;
    return Math.min(MAX_MS, delayMs);
  }
}

/** How long a worker may take to exit after its grace period. Past it the primary kills it. */
export const KILL_AFTER_MS = 10_000;

/** One worker process, as its primary sees it. */
export class Worker implements Recipient, Prober, Watched {
  readonly index: number;
  readonly process: ChildProcess;
  readonly link: Link<PrimaryCalls, WorkerCalls>;
  /** Resolves when the process has exited and all its messages have been read. */
  readonly gone: Promise<void>;
  sessions = 0;
  /** When the worker started to serve; undefined before that, and after its end. */
  readySinceMs: number | undefined;

  constructor(index: number, child: ChildProcess, handlersFor: (worker: Worker) => Handlers<PrimaryCalls>) {
    this.index = index;
    this.process = child;
    this.link = new Link<PrimaryCalls, WorkerCalls>(child, handlersFor(this));
    this.gone = new Promise((resolve) => {
      child.once("exit", () => {
        // Read its last messages first: a connection that it confirmed must not go to another
        // worker.
        if (child.connected) child.once("disconnect", () => resolve());
        else resolve();
      });
    });
  }

  get isTaking(): boolean {
    const { connected, exitCode, signalCode } = this.process;
    return this.readySinceMs !== undefined && connected && exitCode === null && signalCode === null;
  }

  take(name: string, id: number, socket: Socket, onLost: () => void): void {
    this.link.notify("connection", { name, id }, socket, onLost);
  }

  learn(findings: readonly ProbeUpdate[]): void {
    this.link.notify("learn", findings);
  }

  probe(isSuccessor: boolean): Promise<unknown> {
    return this.link.request("probe", { isSuccessor });
  }

  beat(): Promise<unknown> {
    return this.link.request("beat", undefined);
  }
}

interface WorkerPoolOptions {
  readonly count: number;
  readonly fork: () => ChildProcess;
  readonly startOf: (worker: Worker) => WorkerStart;
  readonly handlersFor: (worker: Worker) => Handlers<PrimaryCalls>;
  readonly shutdownGracePeriodMs: number;
  /** A worker that has not exited this long after the grace period is killed (10 s). */
  readonly killAfterMs?: number;
  readonly logger: Logger;
  onReady(worker: Worker): void;
  /** The worker has died; `isExpected`: the primary had asked it to end. */
  onGone(worker: Worker, isExpected: boolean): void;
}

/**
 * Keeps a fixed number of workers alive, and replaces a worker that dies: sooner if it had lived
 * longer.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #delays: RestartDelay[];
  readonly #workers = new Map<number, Worker>();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** For each worker, the problem of its last start, already logged; "" if the start succeeded. */
  readonly #startProblems: string[];
  #isStopping = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#delays = Array.from({ length: options.count }, () => new RestartDelay());
    this.#startProblems = this.#delays.map(() => "");
  }

  /** The living workers, whether or not they serve yet. */
  get workers(): readonly Worker[] {
    return [...this.#workers.values()];
  }

  /** Resolves when all workers serve. If one cannot, ends all and rejects with its message. */
  async start(): Promise<void> {
    try {
      await Promise.all(this.#delays.map((_, index) => this.#start(index)));
    } catch (error) {
      await this.#killAll();
      throw error;
    }
  }

  /** Tells each worker to ask its clients to leave. */
  async enterLameDuck(hasSuccessor: boolean): Promise<void> {
    await Promise.allSettled(this.workers.map(({ link }) => link.request("lameDuck", hasSuccessor)));
  }

  /** Drains every worker as a single process would. Resolves when the last one has exited. */
  async shutDown(): Promise<void> {
    this.#isStopping = true;
    for (const timer of this.#timers) clearTimeout(timer);
    const { shutdownGracePeriodMs, killAfterMs = KILL_AFTER_MS } = this.#options;
    const deadlineMs = shutdownGracePeriodMs + killAfterMs;
    await Promise.all(
      this.workers.map(async ({ link, process: child, gone }) => {
        const timer = setTimeout(() => child.kill("SIGKILL"), deadlineMs);
        // A worker that can no longer be reached is already exiting.
        link.request("shutDown", undefined).catch(() => {});
        await gone;
        clearTimeout(timer);
      }),
    );
  }

  async #start(index: number): Promise<void> {
    const { fork, handlersFor, startOf, logger, onReady } = this.#options;
    const child = fork();
    const worker = new Worker(index, child, handlersFor);
    this.#workers.set(index, worker);
    child.on("error", (error) => logger.error({ worker: index, error }, "a worker process failed"));
    void worker.gone.then(() => this.#gone(worker));
    try {
      await worker.link.request("start", startOf(worker));
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
    this.#startProblems[index] = "";
    worker.readySinceMs = performance.now();
    logger.info({ worker: index, workerPid: child.pid }, "a worker serves");
    onReady(worker);
  }

  #gone(worker: Worker): void {
    const { logger, onGone } = this.#options;
    const livedMs = worker.readySinceMs === undefined ? 0 : performance.now() - worker.readySinceMs;
    const wasReady = worker.readySinceMs !== undefined;
    worker.readySinceMs = undefined;
    this.#workers.delete(worker.index);
    onGone(worker, this.#isStopping);
    if (this.#isStopping) return;
    const { index, process: child } = worker;
    const delayMs = (this.#delays[index] as RestartDelay).nextBackoff(livedMs);
    logger.error(
      {
        worker: index,
        workerPid: child.pid,
        code: child.exitCode,
        signal: child.signalCode,
        sessions: worker.sessions,
        delayMs,
        wasReady,
      },
      "a worker is gone and will be replaced",
    );
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      this.#start(index).catch((error: Error) => {
        const problem = firstLineOf(error.message);
        const log = error.message === this.#startProblems[index] ? "debug" : "error";
        this.#startProblems[index] = error.message;
        logger[log]({ worker: index, problem }, "a worker could not start");
      });
    }, delayMs);
    this.#timers.add(timer);
  }

  async #killAll(): Promise<void> {
    this.#isStopping = true;
    for (const timer of this.#timers) clearTimeout(timer);
    await Promise.all(
      this.workers.map(async ({ process: child, gone }) => {
        child.kill("SIGKILL");
        await gone;
      }),
    );
  }
}

/** An invalid file has one line for each problem, and every retry would log all of them. */
function firstLineOf(text: string): string {
  const [first = "", ...more] = text.split("\n");
  return more.length === 0 ? first : `${first} (and ${more.length} more)`;
}
