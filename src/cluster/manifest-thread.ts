// The thread that reads manifest files once; `read-in-thread.ts` starts it.
import { parentPort, workerData } from "node:worker_threads";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { FeatureGates } from "../config/feature-gates.ts";
import { parseManifests } from "./manifests.ts";
import type { ThreadAnswer, ThreadInput } from "./read-in-thread.ts";

/** The receiver needs a few milliseconds for these. */
const OBJECTS_PER_ANSWER = 100;

if (parentPort === null) throw new Error("this is a thread's program");
const port = parentPort;
const { files, gates } = workerData as ThreadInput;
const answers = read();

// Answers each request once: the receiver would handle many answers in one turn.
port.on("message", () => {
  const { value, done } = answers.next();
  if (done === true) port.close();
  else port.postMessage(value);
});

function* read(): Generator<ThreadAnswer> {
  try {
    const passedOver: string[] = [];
    const objects = parseManifests(files, FeatureGates.parse(gates), (line) => passedOver.push(line));
    for (let start = 0; start < objects.length; start += OBJECTS_PER_ANSWER) {
      yield { objects: objects.slice(start, start + OBJECTS_PER_ANSWER) };
    }
    yield { passedOver };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    yield { problems: error.problems };
  }
}
