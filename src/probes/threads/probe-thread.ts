// One thread that probes: it receives probes and returns results, both in batches. The main thread
// applies the thresholds.
import { parentPort } from "node:worker_threads";
import { containAsync, onFault } from "@sluice/client/internal/observability/faults";
import type { Cancellable, Cancellation } from "../probe-deadline.ts";
import { errored, type ProbeResult } from "../probe-result.ts";
import { runProbe } from "../run-probe.ts";
import {
  KnownProbes,
  type ThreadAnswer,
  type ThreadFault,
  type ThreadResult,
  type ThreadRun,
} from "./serialized-probe.ts";
import { StartQueue } from "./start-queue.ts";

/** A message to a thread: probes to run, and cancelled runs. */
interface ThreadRequest {
  readonly runs: readonly ThreadRun[];
  readonly cancelled: readonly number[];
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
  // Other errors may have properties that cannot be cloned.
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

/**
 * A run with its own cancellation. An AbortSignal per run would cost more than the rest of its
 * bookkeeping.
 */
class CancellableRun implements Cancellation, Cancellable {
  #member: Cancellable | undefined;
  #isCancelled = false;

  add(member: Cancellable): void {
    if (this.#isCancelled) member.cancel();
    else this.#member = member;
  }

  delete(member: Cancellable): void {
    if (this.#member === member) this.#member = undefined;
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#member?.cancel();
  }
}

function toThreadResult(id: number, { result, message, error, wire }: ProbeResult): ThreadResult {
  if (error !== undefined) return [id, result, message, wire, error];
  return result === "Success" ? [id, result, message] : [id, result, message, wire];
}
