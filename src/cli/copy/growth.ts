import { maskControls } from "../../observability/mask-controls.ts";
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

/** Tells the user that the copy contains a file's first `bytes`, its state when the copy began. */
export function noteGrowth(name: string, bytes: number): void {
  process.stderr.write(
    maskControls(`warning: ${name} grew while it was read: the copy has its first ${bytes} bytes\n`),
  );
}

export function changedWhileRead(name: string): CopyError {
  return new CopyError("changed", `${name}: file changed as we read it`);
}
