import { describe, expect, it } from "vitest";
import { readSource, sourceFiles, withoutComments } from "./source-files.ts";

const CALL = /ogger(?:\.(?:debug|info|warn|error|child)|\[level\])\(\s*\{([^}]*)\}/g;

describe("docs/logs.md", () => {
  it("has every field that is logged", () => {
    const logged = sourceFiles().flatMap((file) => fieldsOf(withoutComments(readSource(file))));
    expect(logged.length).toBeGreaterThan(50);
    const documented = new Set(
      readSource("docs/logs.md")
        .split("\n")
        .flatMap((line) => (/^\| ([^|]*) \|/.exec(line)?.[1] ?? "").match(/\w+/g) ?? []),
    );
    expect([...new Set(logged)].filter((name) => !documented.has(name))).toEqual([]);
  });

  it("would miss a field of either form", () => {
    expect(fieldsOf("this.#logger.warn({ a, b: f(x, y), ...rest, cause: 1 }, 'm')")).toEqual([
      "a",
      "b",
      "cause",
    ]);
  });
});

function fieldsOf(source: string): string[] {
  return Array.from(source.matchAll(CALL), ([, fields = ""]) => fields).flatMap((fields) =>
    fields.split(/,(?![^(]*\))/).flatMap((field) => /^\s*(\w+)\s*(?::|$)/.exec(field)?.[1] ?? []),
  );
}
