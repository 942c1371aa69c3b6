import { availableParallelism } from "node:os";
import { count } from "../number-fields.ts";

/** Serving processes. Past it the configuration is refused. */
const MAX_WORKERS = 256;

export const workers = count("Number of serving processes; `auto` starts one per available core.", {
  default: 1,
  or: "auto",
  from: 1,
  to: MAX_WORKERS,
  flag: { name: "workers", read: workersOf },
});

export type Workers = ReturnType<typeof workers.read>;

export function workerCount(given: Workers): number {
  return given === "auto" ? availableParallelism() : given;
}

function workersOf(text: string): Workers {
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (text === "auto" || (number >= 1 && number <= MAX_WORKERS)) return text === "auto" ? text : number;
  throw new RangeError(
    `must be a number between 1 and ${MAX_WORKERS}, or auto, got ${JSON.stringify(text.slice(0, 80))}`,
  );
}
