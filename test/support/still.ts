import { eventually } from "./eventually.ts";

const SAMPLES = 6;
const INTERVAL_MS = 25;

/**
 * Waits until a number that counts progress exceeds `above` and has not changed for a while: every
 * buffer on the way is full. Returns the number.
 */
export async function untilStill(
  what: string,
  read: () => number | Promise<number>,
  above = 0,
): Promise<number> {
  let last = Number.NaN;
  let same = 0;
  await eventually(
    `${what} stands still`,
    async () => {
      const now = await read();
      same = now === last ? same + 1 : 0;
      last = now;
      return now > above && same >= SAMPLES;
    },
    { intervalMs: INTERVAL_MS, timeoutMs: 60_000 },
  );
  return last;
}
