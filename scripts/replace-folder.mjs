import { renameSync, rmSync } from "node:fs";

/** Puts a finished folder in the place of another, by two renames. Where another process does the same, the last one wins. */
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
      // Another build was between the two renames.
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    }
  }
  rmSync(old, { recursive: true, force: true });
}
