import type { CopyContext } from "./copy-context.ts";
import { CopyError } from "./copy-error.ts";

interface Known {
  readonly size: number;
  readonly mtimeMs: number;
}

/**
 * Whether a file grew after its first `readBytes` were read, so those bytes are still its start.
 * Throws CopyError "changed" if it shrank or was overwritten in place.
 */
export function hasOnlyGrown(name: string, before: Known, readBytes: number, after: Known): boolean {
  const hasGrown = after.size > before.size;
  const isSame = after.size === before.size && after.mtimeMs === before.mtimeMs;
  if (readBytes !== before.size || !(hasGrown || isSame)) throw changedWhileRead(name);
  return hasGrown;
}

/** Warns that the copy contains a file's first `bytes`, its state when the copy began. */
export function warnOfGrowth({ warn }: Pick<CopyContext, "warn">, name: string, bytes: number): void {
  warn(`${name} grew while it was read: the copy has its first ${bytes} bytes`);
}

export function changedWhileRead(name: string): CopyError {
  return new CopyError("changed", `${name}: file changed as we read it`);
}
