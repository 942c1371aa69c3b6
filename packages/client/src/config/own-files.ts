import path from "node:path";
import { getAsset, isSea } from "node:sea";
import { fileURLToPath } from "node:url";

/**
 * The single binary (docs/single-binary.md) has no files beside it: scripts/build-binary.mjs embeds
 * them.
 */
export const isSingleBinary: boolean = isSea();

/** A text that scripts/build-binary.mjs embedded. Throws outside the single binary. */
export function embeddedText(name: string): string {
  return getAsset(name, "utf8");
}

/**
 * The program for a worker thread or child process: next to the file `url`, compiled alike, or in
 * the single binary.
 */
export function ownProgram(name: string, url: string): URL {
  if (!isSingleBinary) return new URL(`${name}${path.extname(fileURLToPath(url))}`, url);
  const code = embeddedText("loader.js").replace("PROGRAM", name);
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}
