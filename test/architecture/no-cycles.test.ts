import path from "node:path";
import { describe, expect, it } from "vitest";
import { importsOf, readSource, typeScriptFilesIn } from "./source-files.ts";

type ImportGraph = ReadonlyMap<string, readonly string[]>;

describe("import cycles", () => {
  it("no file imports itself through others", () => {
    expect(cyclesIn(graphOf([...typeScriptFilesIn("protocols"), ...typeScriptFilesIn("src")]))).toEqual([]);
  });

  it("a planted cycle is found, once, and a diamond is none", () => {
    const diamond: [string, string[]][] = [
      ["a", ["b", "c"]],
      ["b", ["d"]],
      ["c", ["d"]],
      ["d", []],
    ];
    expect(cyclesIn(new Map(diamond))).toEqual([]);
    expect(cyclesIn(new Map([...diamond, ["d", ["b"]]]))).toEqual(["b -> d -> b"]);
  });
});

function graphOf(files: readonly string[]): ImportGraph {
  return new Map(
    files.map((file) => [
      file,
      importsOf(readSource(file)).flatMap(({ specifier }) =>
        specifier?.startsWith(".") ? [path.posix.join(path.posix.dirname(file), specifier)] : [],
      ),
    ]),
  );
}

/** One line per cycle that a depth-first walk closes. */
function cyclesIn(graph: ImportGraph): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, trail: readonly string[]): void => {
    const start = trail.indexOf(file);
    if (start >= 0) {
      cycles.push([...trail.slice(start), file].join(" -> "));
      return;
    }
    if (done.has(file)) return;
    for (const imported of graph.get(file) ?? []) visit(imported, [...trail, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return cycles;
}
