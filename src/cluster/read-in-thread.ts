import { Worker } from "node:worker_threads";
import { ownProgram } from "@sluice/client/internal/config/version";
import type { FeatureGates } from "../config/feature-gates.ts";
import type { FileReading, FoundItem, ManifestFile, ReadItem } from "./manifests.ts";

export interface ThreadInput {
  readonly files: readonly ManifestFile[];
  /** `A=true,B=false`. */
  readonly gates: string;
  /** Digests of items that the receiver already has. */
  readonly known: ReadonlySet<string>;
}

/** An item without its object if the receiver already has it. */
type SentItem = Pick<FoundItem, "digest" | "line"> & Partial<ReadItem>;

/** Some items of the current file, the end of that file, or the end of all files. */
export type ThreadAnswer =
  | { readonly items: readonly SentItem[] }
  | { readonly endOfFile: Omit<FileReading, "found"> }
  | { readonly isOver: true };

const PROGRAM = ownProgram("manifest-thread", import.meta.url);

/**
 * Runs `readingFiles` in a thread (`program`, the compiled manifest-thread.ts), so that large documents do
 * not block. Rejects if the thread fails.
 */
export function readInThread(
  files: readonly ManifestFile[],
  gates: FeatureGates,
  program: URL = PROGRAM,
  known: ReadonlyMap<string, ReadItem> = new Map(),
): Promise<FileReading[]> {
  const input: ThreadInput = { files, gates: gates.toString(), known: new Set(known.keys()) };
  return new Promise((resolve, reject) => {
    const worker = new Worker(program, { workerData: input });
    const readings: FileReading[] = [];
    let found: FoundItem[] = [];
    worker.on("error", reject);
    // Has no effect if the reading has ended.
    worker.on("exit", () => reject(new Error("the thread that read has ended")));
    worker.on("message", (answer: ThreadAnswer) => {
      if ("isOver" in answer) {
        resolve(readings);
        void worker.terminate();
        return;
      }
      if ("items" in answer) for (const item of answer.items) found.push(foundItem(item, known));
      else {
        readings.push({ ...answer.endOfFile, found });
        found = [];
      }
      // Requests the next answer in the next turn; otherwise this turn would handle it, too.
      setImmediate(() => worker.postMessage("next"));
    });
    worker.postMessage("next");
  });
}

function foundItem(
  { digest, line, object, warnings = [] }: SentItem,
  known: ReadonlyMap<string, ReadItem>,
): FoundItem {
  const read = object === undefined ? known.get(digest) : { object, warnings };
  if (read === undefined) throw new Error("the thread sent an item without its object");
  return { ...read, digest, line };
}
