// The thread that writes recordings; `recorder.ts` starts it.
import { parentPort, workerData } from "node:worker_threads";
import { serveRecordings } from "./serve-recordings.ts";
import type { ThreadInput } from "./thread-messages.ts";

if (parentPort === null) throw new Error("this is a thread's program");
serveRecordings(parentPort, workerData as ThreadInput);
