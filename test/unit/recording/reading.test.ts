import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { MAX_LINE_BYTES, readLines } from "../../../src/recording/reading/recording-lines.ts";

const folder = mkdtempSync(path.join(tmpdir(), "sluice-lines-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function linesOf(content: string) {
  const file = path.join(folder, "file");
  writeFileSync(file, content);
  const lines: string[] = [];
  const rest = await readLines(file, (line) => void lines.push(line.toString()));
  return { lines, rest: rest.toString() };
}

describe("the lines of a recording", () => {
  it.each([
    ["", [], ""],
    ["a", [], "a"],
    ["a\n\nb\nc", ["a", "", "b"], "c"],
    [`${"x".repeat(600_000)}\ny\n`, ["x".repeat(600_000), "y"], ""],
  ])("of a file", async (content, lines, rest) => {
    expect(await linesOf(content)).toEqual({ lines, rest });
  });

  it("are refused with a line without an end", async () => {
    await expect(linesOf("x".repeat(MAX_LINE_BYTES + 300_000))).rejects.toThrow("too long");
  });
});
