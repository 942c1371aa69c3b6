// One thread that probes: it is told what to run and tells how it went, both in batches. Counting is done by who asks.
import { parentPort } from "node:worker_threads";
import { runProbe } from "../run-probe.ts";
import type { ThreadAnswer, ThreadRequest, ThreadRun } from "./thread-messages.ts";

if (parentPort === null) throw new Error("this is a thread's program");
const port = parentPort;
const running = new Map<number, AbortController>();
let done: [number, ThreadAnswer[number][1]][] = [];

port.on("message", ({ runs, cancelled }: ThreadRequest) => {
  for (const run of runs) void start(run);
  for (const id of cancelled) running.get(id)?.abort();
});

async function start({ id, handler, target, options }: ThreadRun): Promise<void> {
  const stopping = new AbortController();
  running.set(id, stopping);
  const { wire: _, ...result } = await runProbe(handler, target, { ...options, signal: stopping.signal });
  running.delete(id);
  // All that was read in one turn of the loop is one message.
  if (done.length === 0) setImmediate(answer);
  done.push([id, result]);
}

function answer(): void {
  port.postMessage(done satisfies ThreadAnswer);
  done = [];
}
