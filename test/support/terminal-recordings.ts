import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { TerminalPart } from "../../src/sessions/screens/screen-messages.ts";

const folder = path.resolve(import.meta.dirname, "../fixtures/screens");

/** What real programs printed in a pseudo-terminal, and its sizes. */
export const RECORDED_PROGRAMS: readonly string[] = readdirSync(folder).map((name) => path.parse(name).name);

export function recordingOf(program: string): readonly TerminalPart[] {
  const text = readFileSync(path.join(folder, `${program}.json`), "utf8");
  return (JSON.parse(text) as [code: string, text: string][]).map(([code, data]) => {
    if (code === "o") return Uint8Array.from(Buffer.from(data, "base64"));
    const [cols = 0, rows = 0] = data.split("x").map(Number);
    return { cols, rows };
  });
}

/** The part up to this many bytes, and the part after them. */
export function cutAt(
  parts: readonly TerminalPart[],
  bytes: number,
): readonly [before: readonly TerminalPart[], behind: readonly TerminalPart[]] {
  const before: TerminalPart[] = [];
  let left = bytes;
  for (const [index, part] of parts.entries()) {
    if (part instanceof Uint8Array && part.length > left)
      return [
        [...before, part.subarray(0, left)],
        [part.subarray(left), ...parts.slice(index + 1)],
      ];
    if (part instanceof Uint8Array) left -= part.length;
    before.push(part);
  }
  return [before, []];
}

export function bytesOf(parts: readonly TerminalPart[]): number {
  return parts.reduce((sum, part) => sum + (part instanceof Uint8Array ? part.length : 0), 0);
}
