import path from "node:path";
import { getAsset, isSea } from "node:sea";
import { fileURLToPath } from "node:url";

/** The single binary (docs/single-binary.md) has no files beside itself: scripts/build-binary.mjs embeds them. */
export const isSingleBinary: boolean = isSea();

/** A text that scripts/build-binary.mjs embeds under this name. Throws where this is not the single binary. */
export function embeddedText(name: string): string {
  return getAsset(name, "utf8");
}

/** A program for a thread or process of its own: beside the file `url`, compiled as that is, or in the single binary. */
export function ownProgram(name: string, url: string): URL {
  if (!isSingleBinary) return new URL(`${name}${path.extname(fileURLToPath(url))}`, url);
  const code = embeddedText("loader.js").replace("PROGRAM", name);
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}
