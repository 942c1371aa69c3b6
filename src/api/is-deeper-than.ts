/** Levels of an object that is written again, in an answer or an event. Kubernetes' own types have about a dozen. */
export const MAX_OBJECT_DEPTH = 64;

/** Whether maps and lists lie in one another for more than `levels`; no deeper than that is looked, so no depth ends the stack. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}
