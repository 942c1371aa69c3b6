import path from "node:path";
import { describe, expect, it } from "vitest";
import { importsOf, readSource, typeScriptFilesIn } from "./source-files.ts";

type ImportGraph = ReadonlyMap<string, readonly string[]>;

describe("import cycles", () => {
  it("no file imports itself through others", () => {
    expect(cyclesIn(graphOf([...typeScriptFilesIn("protocols"), ...typeScriptFilesIn("src")]))).toEqual([]);
  });

  it("no folder imports itself through others", () => {
    const files = graphOf([...typeScriptFilesIn("protocols"), ...typeScriptFilesIn("src")]);
    expect(cyclesIn(foldersOf(files))).toEqual([]);
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

/** src/main.ts and src/app.ts are the root above the folders and belong to none. */
function foldersOf(files: ImportGraph): ImportGraph {
  const folders = new Map<string, Set<string>>();
  for (const [file, imported] of files) {
    const from = folderOf(file);
    const targets = folders.get(from) ?? new Set();
    for (const target of imported.map(folderOf)) if (target !== from && target !== "src") targets.add(target);
    if (from !== "src") folders.set(from, targets);
  }
  return new Map(Array.from(folders, ([folder, targets]) => [folder, [...targets]]));
}

function folderOf(file: string): string {
  return path.posix.dirname(file).split("/").slice(0, 2).join("/");
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
