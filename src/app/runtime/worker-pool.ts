import type { ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import type { Logger } from "../../observability/logger.ts";
import type { ProbeUpdate } from "../../probes/probe-update.ts";
import type { PrimaryCalls, WorkerCalls, WorkerStart } from "./calls.ts";
import type { Recipient } from "./connection-dispatcher.ts";
import { type Handlers, Link } from "./link.ts";
import type { Watched } from "./prober-watchdog.ts";
import { RestartDelay } from "./restart-delay.ts";
import type { Prober } from "./shared-probing.ts";

/** After its own grace period a worker has this long to be gone. */
export const KILL_AFTER_MS = 10_000;

/** One process of the gateway, as its primary sees it. */
export class Worker implements Recipient, Prober, Watched {
  readonly index: number;
  readonly process: ChildProcess;
  readonly link: Link<PrimaryCalls, WorkerCalls>;
  /** Resolves when the process has ended and all that it sent has been read. */
  readonly gone: Promise<void>;
  sessions = 0;
  /** Since when it serves; undefined before, and after its end. */
  readySinceMs: number | undefined;

  constructor(index: number, child: ChildProcess, handlersFor: (worker: Worker) => Handlers<PrimaryCalls>) {
    this.index = index;
    this.process = child;
    this.link = new Link<PrimaryCalls, WorkerCalls>(child, handlersFor(this));
    this.gone = new Promise((resolve) => {
      child.once("exit", () => {
        // What it still sent comes first: connections that it had received are not given to another.
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

export interface WorkerPoolOptions {
  readonly count: number;
  readonly fork: () => ChildProcess;
  readonly startOf: (worker: Worker) => WorkerStart;
  readonly handlersFor: (worker: Worker) => Handlers<PrimaryCalls>;
  readonly shutdownGracePeriodMs: number;
  /** How long after it a worker that does not end is killed; 10 s unless said otherwise. */
  readonly killAfterMs?: number;
  readonly logger: Logger;
  onReady(worker: Worker): void;
  /** It is gone; `isExpected` when it was asked to end. */
  onGone(worker: Worker, isExpected: boolean): void;
}

/** Keeps so many workers alive. A worker that dies is replaced, the sooner the longer it had lived. */
export class WorkerPool {
  readonly #options: WorkerPoolOptions;
  readonly #delays: RestartDelay[];
  readonly #workers = new Map<number, Worker>();
  readonly #timers = new Set<NodeJS.Timeout>();
  /** By worker: the problem of its last start, already logged; "" where that went well. */
  readonly #startProblems: string[];
  #isStopping = false;

  constructor(options: WorkerPoolOptions) {
    this.#options = options;
    this.#delays = Array.from({ length: options.count }, () => new RestartDelay());
    this.#startProblems = this.#delays.map(() => "");
  }

  /** Those that live, whether they serve already or not. */
  get workers(): readonly Worker[] {
    return [...this.#workers.values()];
  }

  /** Resolves when all serve. Rejects with the message of the first that cannot; all are ended then. */
  async start(): Promise<void> {
    try {
      await Promise.all(this.#delays.map((_, index) => this.#start(index)));
    } catch (error) {
      await this.#killAll();
      throw error;
    }
  }

  /** Asks the clients of each to leave. */
  async enterLameDuck(hasSuccessor: boolean): Promise<void> {
    await Promise.allSettled(this.workers.map(({ link }) => link.request("lameDuck", hasSuccessor)));
  }

  /** Lets each drain as a gateway alone would, and resolves when the last one is gone. */
  async shutDown(): Promise<void> {
    this.#isStopping = true;
    for (const timer of this.#timers) clearTimeout(timer);
    const { shutdownGracePeriodMs, killAfterMs = KILL_AFTER_MS } = this.#options;
    const deadlineMs = shutdownGracePeriodMs + killAfterMs;
    await Promise.all(
      this.workers.map(async ({ link, process: child, gone }) => {
        const timer = setTimeout(() => child.kill("SIGKILL"), deadlineMs);
        // A worker that cannot be asked any more is on its way out.
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

/** A wrong file has a line for each of its problems, and each retry would log them all. */
function firstLineOf(text: string): string {
  const [first = "", ...more] = text.split("\n");
  return more.length === 0 ? first : `${first} (and ${more.length} more)`;
}
