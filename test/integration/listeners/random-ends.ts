import { readdirSync } from "node:fs";

/** Open descriptors of this process: the ends of a test are among them. */
export const descriptors = (): number => readdirSync("/proc/self/fd").length;

/** Park and Miller's random numbers from 0 to 1, so that what failed once fails again. */
export function seededChoices(seed: number): {
  readonly random: () => number;
  readonly pick: <T>(values: readonly T[]) => T;
} {
  let state = seed;
  const random = (): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  return {
    random,
    pick: (values) => values[Math.floor(random() * values.length)] as (typeof values)[number],
  };
}
