import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

interface Row {
  readonly threat: string;
  readonly tests: readonly { readonly file: string; readonly title: string }[];
  readonly text: string;
}

const rows: Row[] = readFileSync("docs/threats.md", "utf8")
  .split("\n")
  .filter((line) => /^\| T\d+ /.test(line))
  .map((line) => {
    const cells = line.split(" | ");
    const named = [...(cells.at(-1) ?? "").matchAll(/`(test\/[^`]+)`(?:: ([^;|]+))?/g)];
    return {
      threat: line.slice(2).split(" ")[0] ?? "",
      tests: named.map(([, file = "", title = ""]) => ({ file, title: title.trim() })),
      text: line,
    };
  });

describe("threats", () => {
  it("are all there, from T1 on, none twice", () => {
    expect(rows.length).toBeGreaterThanOrEqual(32);
    expect(rows.map(({ threat }) => threat)).toEqual(rows.map((_, index) => `T${index + 1}`));
  });

  it.each(rows)("$threat is held off by tests that exist, or does not apply", ({ tests, text }) => {
    if (tests.length === 0) expect(text).toContain("does not apply: ");
    for (const { file, title } of tests) {
      expect(existsSync(file), `${file} exists`).toBe(true);
      // A title with a value in it stands as a template in the source.
      expect(readFileSync(file, "utf8"), `${file} has a test: ${title}`).toContain(title);
    }
  });
});
