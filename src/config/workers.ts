import { availableParallelism } from "node:os";
import type { Section } from "./section.ts";

/** How many processes serve; `auto` is one for each core that this machine lets us use. */
export type Workers = number | "auto";

const MAX_WORKERS = 256;

export function readWorkers(root: Section): Workers {
  return root.countOr("workers", "auto", 1, { min: 1, max: MAX_WORKERS });
}

/** Throws RangeError. */
export function parseWorkers(text: string): Workers {
  if (text === "auto") return "auto";
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= MAX_WORKERS) return count;
  throw new RangeError(`must be a number between 1 and ${MAX_WORKERS}, or auto`);
}

export function workerCount(workers: Workers): number {
  return workers === "auto" ? availableParallelism() : workers;
}
