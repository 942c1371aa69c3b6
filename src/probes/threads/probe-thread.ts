// One thread that probes: it is told what to run and tells how it went, both in batches. Counting is done by who asks.
import { parentPort } from "node:worker_threads";
import { runProbe } from "../run-probe.ts";
import { StartQueue } from "./start-queue.ts";
import type { ThreadAnswer, ThreadRequest, ThreadRun } from "./thread-messages.ts";

/** Some milliseconds of work. */
const STARTS_PER_TURN = 32;

if (parentPort === null) throw new Error("this is a thread's program");
const port = parentPort;
/** By id: what waits, and what runs. */
const stoppings = new Map<number, AbortController>();
const queue = new StartQueue<ThreadRun>(STARTS_PER_TURN, (run) => void start(run), setImmediate);
let done: [number, ThreadAnswer[number][1]][] = [];

port.on("message", ({ runs, cancelled }: ThreadRequest) => {
  for (const { id } of runs) stoppings.set(id, new AbortController());
  queue.add(runs);
  for (const id of cancelled) stoppings.get(id)?.abort();
});

async function start({ id, handler, target, options }: ThreadRun): Promise<void> {
  const { wire: _, ...result } = await runProbe(handler, target, {
    ...options,
    signal: stoppings.get(id)?.signal,
  });
  stoppings.delete(id);
  // All that was read in one turn of the loop is one message.
  if (done.length === 0) setImmediate(answer);
  done.push([id, result]);
}

function answer(): void {
  port.postMessage(done satisfies ThreadAnswer);
  done = [];
}
