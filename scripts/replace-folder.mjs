import { renameSync, rmSync } from "node:fs";

/**
 * Replaces a folder by a finished one, with two renames. If another process does the same, the last
 * one wins.
 */
export function replaceFolder(target, finished) {
  const old = `${finished}.old`;
  for (;;) {
    rmSync(old, { recursive: true, force: true });
    try {
      renameSync(target, old);
    } catch (error) {
      if (error.code !== "ENOENT") throw error;
    }
    try {
      renameSync(finished, target);
      break;
    } catch (error) {
      // Another build came between the two renames.
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    }
  }
  rmSync(old, { recursive: true, force: true });
}
