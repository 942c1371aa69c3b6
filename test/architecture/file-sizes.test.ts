import { describe, expect, it } from "vitest";
import { readSource, sourceFiles, typeScriptFilesIn } from "./source-files.ts";

/** A file that needs more lines holds two subjects. Tests may be twice as long: their tables are data. */
const maxLines: Readonly<Record<string, number>> = {
  protocols: 300,
  packages: 300,
  src: 300,
  bench: 300,
  test: 600,
};

describe("file sizes", () => {
  it.each(Object.entries(maxLines))("no file under %s is longer than %i lines", (folder, limit) => {
    const long = typeScriptFilesIn(folder)
      .map((file) => ({ file, lines: readSource(file).trimEnd().split("\n").length }))
      .filter(({ lines }) => lines > limit)
      .map(({ file, lines }) => `${file}: ${lines} lines`);
    expect(long).toEqual([]);
  });
});

/** Each is a promise to other modules. May only fall: keep private what no other module needs. */
const MAX_EXPORTED_NAMES = 2_999;

it("the sources export few names", () => {
  const names = sourceFiles()
    .filter((file) => !file.startsWith("protocols/examples/"))
    .flatMap((file) => [...exportedNames(readSource(file))]);
  expect(names.length).toBeLessThanOrEqual(MAX_EXPORTED_NAMES);
});

it("declarations, lists and overloads are counted once a name", () => {
  const source =
    "export function a(): void;\nexport function a() {}\nexport { b, type C as D } from 'e';\nconst f = 1;";
  expect([...exportedNames(source)]).toEqual(["a", "b", "D"]);
});

function exportedNames(source: string): Set<string> {
  const declared =
    /^export (?:(?:declare|abstract|async) )*(?:function\*?|class|interface|type|const|let|enum) (\w+)/gm;
  const lists = source.matchAll(/^export (?:type )?\{([^}]*)\}/gm);
  return new Set([
    ...Array.from(source.matchAll(declared), ([, name = ""]) => name),
    ...Array.from(lists, ([, list = ""]) => list.split(",").map((one) => one.trim().split(/\s/).at(-1) ?? ""))
      .flat()
      .filter((name) => name !== ""),
  ]);
}
