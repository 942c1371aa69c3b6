import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { findTail } from "../../../../../src/legs/kubelet/logs/read-log.ts";

const folder = mkdtempSync(path.join(tmpdir(), "sluice-tail-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const T = "2026-01-02T03:04:05.1Z";
const whole = (content: string) => `${T} stdout F ${content}\n`;
const part = (content: string) => `${T} stdout P ${content}\n`;

async function tailOf(text: string, lines: number): Promise<string> {
  const file = path.join(folder, "log");
  writeFileSync(file, text);
  const handle = await open(file);
  try {
    return text.slice(await findTail(handle, lines));
  } finally {
    await handle.close();
  }
}

describe("findTail", () => {
  it.each([
    ["none", whole("a") + whole("b"), 0, ""],
    ["one", whole("a") + whole("b"), 1, whole("b")],
    ["all", whole("a") + whole("b"), 2, whole("a") + whole("b")],
    ["more than there are", whole("a"), 9, whole("a")],
    ["of an empty log", "", 3, ""],
    [
      "a line of parts is one",
      whole("a") + part("b") + part("c") + whole("d"),
      1,
      part("b") + part("c") + whole("d"),
    ],
    [
      "and is not cut",
      whole("a") + part("b") + whole("c") + whole("d"),
      2,
      part("b") + whole("c") + whole("d"),
    ],
    ["a line that is not yet whole counts", whole("a") + whole("b") + part("c"), 1, part("c")],
    ["also without its newline", whole("a") + whole("b").slice(0, -1), 1, whole("b").slice(0, -1)],
    ["garbage is no line", `${whole("a")}junk\n\n${whole("b")}`, 2, `${whole("a")}junk\n\n${whole("b")}`],
  ])("%s", async (_name, text, lines, tail) => {
    expect(await tailOf(text, lines)).toBe(tail);
  });

  it("is what counting from the front gives, wherever blocks end", async () => {
    const line = fc.tuple(fc.constantFrom("F", "P"), fc.integer({ min: 0, max: 9_000 }));
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { maxLength: 60 }),
        fc.integer({ min: 0, max: 20 }),
        async (lines, count) => {
          const texts = lines.map(([tag, length]) => (tag === "F" ? whole : part)("x".repeat(length)));
          const starts = texts.flatMap((_, index) =>
            index === 0 || lines[index - 1]?.[0] === "F" ? [index] : [],
          );
          const first = count === 0 ? texts.length : (starts.at(-count) ?? 0);
          expect((await tailOf(texts.join(""), count)).length).toBe(texts.slice(first).join("").length);
        },
      ),
      { numRuns: 150 },
    );
  });
});
