import { readdirSync, symlinkSync } from "node:fs";
import path from "node:path";

/**
 * Fills a folder with links to every program in PATH except one. The returned folder serves as a
 * PATH.
 */
export function pathWithout(program: string, folder: string): string {
  const seen = new Set([program]);
  for (const directory of (process.env.PATH ?? "").split(path.delimiter)) {
    for (const name of namesIn(directory)) {
      if (seen.has(name)) continue;
      seen.add(name);
      symlinkSync(path.join(directory, name), path.join(folder, name));
    }
  }
  return folder;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    // PATH may name folders that do not exist.
    return [];
  }
}
