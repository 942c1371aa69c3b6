// One thread that probes: it receives probes and returns results, both in batches. The main thread counts.
import { parentPort } from "node:worker_threads";
import { containAsync, onFault } from "@sluice/client/internal/observability/faults";
import { CancellableRun } from "../cancellation-for.ts";
import { errored, type ProbeResult } from "../probe-result.ts";
import { runProbe } from "../run-probe.ts";
import { KnownProbes } from "./serialized-probe.ts";
import {
  type ThreadAnswer,
  type ThreadFault,
  type ThreadRequest,
  type ThreadResult,
  type ThreadRun,
  toThreadResult,
} from "./thread-messages.ts";

/**
 * Starts waiting probes a few at a time, yielding to the event loop. An overloaded thread then runs
 * probes late instead of letting all of them time out.
 */
export class StartQueue<Run> {
  readonly #start: (run: Run) => void;
  readonly #perTurn: number;
  readonly #later: (turn: () => void) => void;
  #waiting: Run[] = [];
  #next = 0;

  /** `later` calls back after the readable sockets were read: `setImmediate`. */
  constructor(perTurn: number, start: (run: Run) => void, later: (turn: () => void) => void) {
    this.#perTurn = perTurn;
    this.#start = start;
    this.#later = later;
  }

  add(runs: readonly Run[]): void {
    const isIdle = this.#waiting.length === 0;
    for (const run of runs) this.#waiting.push(run);
    if (isIdle && this.#waiting.length > 0) this.#turn();
  }

  #turn(): void {
    const end = Math.min(this.#waiting.length, this.#next + this.#perTurn);
    while (this.#next < end) this.#start(this.#waiting[this.#next++] as Run);
    if (this.#next < this.#waiting.length) {
      this.#later(() => this.#turn());
      return;
    }
    this.#waiting = [];
    this.#next = 0;
  }
}

/** Takes a few milliseconds. */
const STARTS_PER_TURN = 32;

if (parentPort === null) throw new Error("this is a thread's program");
const port = parentPort;
const known = new KnownProbes();
/** Waiting and running probes, by id. */
const running = new Map<number, CancellableRun>();
const queue = new StartQueue<ThreadRun>(STARTS_PER_TURN, begin, setImmediate);
let done: ThreadResult[] = [];

onFault((where, error) => {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  // Another error may have properties that cannot be cloned.
  port.postMessage({ where, error: Object.assign(new Error(message), { stack }) } satisfies ThreadFault);
});

port.on("message", ({ runs, cancelled }: ThreadRequest) => {
  for (const [id] of runs) running.set(id, new CancellableRun());
  queue.add(runs);
  for (const id of cancelled) running.get(id)?.cancel();
});

function begin(run: ThreadRun): void {
  containAsync("probe", start(run), (error) => settle(run[0], errored((error as Error).message)));
}

async function start([id, text]: ThreadRun): Promise<void> {
  const { handler, target, options } = known.read(text);
  settle(id, await runProbe(handler, target, options, running.get(id)));
}

function settle(id: number, result: ProbeResult): void {
  running.delete(id);
  // Sends all results of one turn in one message.
  if (done.length === 0) setImmediate(answer);
  done.push(toThreadResult(id, result));
}

function answer(): void {
  port.postMessage(done satisfies ThreadAnswer);
  done = [];
}
