import { Worker } from "node:worker_threads";
import {
  ConfigurationError,
  type ConfigurationProblem,
} from "@sluice/client/internal/config/configuration-error";
import { ownProgram } from "@sluice/client/internal/config/own-files";
import type { KubernetesObject } from "../api/objects.ts";
import type { FeatureGates } from "../config/feature-gates.ts";
import type { ManifestFile, OnPassedOver } from "./manifests.ts";

export interface ThreadInput {
  readonly files: readonly ManifestFile[];
  /** `A=true,B=false`. */
  readonly gates: string;
}

export type ThreadAnswer =
  | { readonly objects: readonly KubernetesObject[] }
  | { readonly problems: readonly ConfigurationProblem[] }
  | { readonly passedOver: readonly string[] };

const PROGRAM = ownProgram("manifest-thread", import.meta.url);

/**
 * Runs `parseManifests` in a thread (`program`, the compiled manifest-thread.ts), so that large
 * documents do not block. Rejects with ConfigurationError, or another error if the thread fails.
 */
export function readInThread(
  files: readonly ManifestFile[],
  gates: FeatureGates,
  program: URL = PROGRAM,
  onPassedOver: OnPassedOver = () => {},
): Promise<KubernetesObject[]> {
  const input: ThreadInput = { files, gates: gates.toString() };
  return new Promise((resolve, reject) => {
    const worker = new Worker(program, { workerData: input });
    const objects: KubernetesObject[] = [];
    const end = (): void => void worker.terminate();
    worker.on("error", reject);
    // No effect after the end.
    worker.on("exit", () => reject(new Error("the thread that read has ended")));
    worker.on("message", (answer: ThreadAnswer) => {
      if ("objects" in answer) {
        for (const object of answer.objects) objects.push(object);
        // Waits for the next turn; otherwise the next answer would be handled in this one.
        setImmediate(() => worker.postMessage("next"));
        return;
      }
      if ("problems" in answer) reject(new ConfigurationError(answer.problems));
      else {
        for (const line of answer.passedOver) onPassedOver(line);
        resolve(objects);
      }
      end();
    });
    worker.postMessage("next");
  });
}
