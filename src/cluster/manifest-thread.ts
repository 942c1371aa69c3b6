// The thread that reads manifest files once; `read-in-thread.ts` starts it.
import { parentPort, workerData } from "node:worker_threads";
import { FeatureGates } from "../config/feature-gates.ts";
import { atOnce } from "../lifecycle/slices.ts";
import { type ReadItem, readingFiles } from "./manifests.ts";
import type { ThreadAnswer, ThreadInput } from "./read-in-thread.ts";

/** The receiver handles this many items in a few milliseconds. */
const ITEMS_PER_ANSWER = 100;
/** A placeholder for items that the receiver already has. */
const ELSEWHERE: ReadItem = { object: { apiVersion: "", kind: "", metadata: { name: "" } }, warnings: [] };

if (parentPort === null) throw new Error("this is a thread's program");
const port = parentPort;
const { files, gates, known: digests } = workerData as ThreadInput;
const answers = read();

// Sends one answer for each request: otherwise the receiver would handle many answers in one turn.
port.on("message", () => {
  const { value, done } = answers.next();
  if (done === true) port.close();
  else port.postMessage(value);
});

function* read(): Generator<ThreadAnswer> {
  const known = new Map([...digests].map((digest) => [digest, ELSEWHERE]));
  const context = { gates: FeatureGates.parse(gates), known };
  for (const { found, ...endOfFile } of atOnce(readingFiles(files, context))) {
    const items = found.map(({ digest, line, ...read }) =>
      digests.has(digest) ? { digest, line } : { digest, line, ...read },
    );
    for (let start = 0; start < items.length; start += ITEMS_PER_ANSWER) {
      yield { items: items.slice(start, start + ITEMS_PER_ANSWER) };
    }
    yield { endOfFile };
  }
  yield { isOver: true };
}
