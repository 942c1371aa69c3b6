/**
 * Levels of nesting in a posted review, an object of an audit event or of another replica, and an
 * answer that a command reads. Past it: 400, the object is left out, or the command fails.
 */
export const MAX_OBJECT_DEPTH = 64;

/**
 * Whether maps and lists are nested deeper than `levels`. Looks no deeper, so that the stack cannot
 * overflow.
 */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(member, levels - 1));
}
