import { describe, expect, it } from "vitest";
import { linesUpTo } from "../../../packages/client/src/net/lines-up-to.ts";

async function linesOf(chunks: readonly string[], maxBytes: number): Promise<string[]> {
  async function* given() {
    // One memory, as a connection reuses its own.
    const memory = Buffer.alloc(64);
    for (const chunk of chunks) yield memory.subarray(0, memory.write(chunk));
  }
  const lines: string[] = [];
  const refuse = (problem: string) => new Error(`a line ${problem}`);
  for await (const line of linesUpTo(given(), maxBytes, refuse)) lines.push(line.toString());
  return lines;
}

describe("linesUpTo", () => {
  it("gives whole lines whose chunks' memory is used again", async () => {
    expect(await linesOf(["a\n\nb", "c", "d\ne", "\n"], 3)).toEqual(["a", "", "bcd", "e"]);
  });

  it.each([
    ["in one chunk", ["ok\nabcd\n"], "more than 3 bytes"],
    ["in two", ["ab", "cd\n"], "more than 3 bytes"],
    ["that does not end", ["ab", "cd"], "more than 3 bytes"],
    ["that is cut short", ["a\nb"], "is cut short"],
  ])("refuses a line %s", async (_, chunks, problem) => {
    await expect(linesOf(chunks, 3)).rejects.toThrow(problem);
  });
});
