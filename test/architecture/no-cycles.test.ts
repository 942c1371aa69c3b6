import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  importedFile,
  importsOf,
  readSource,
  SOURCE_FOLDERS,
  sourceFiles,
  typeScriptFilesIn,
} from "./source-files.ts";

type ImportGraph = ReadonlyMap<string, readonly string[]>;

describe("import cycles", () => {
  it("no file imports itself through others", () => {
    expect(cyclesIn(graphOf(sourceFiles()))).toEqual([]);
  });

  it.each(roomFolders())("no folder of %s imports itself through others", (room) => {
    const graph = graphOf(typeScriptFilesIn(room));
    expect(cyclesIn(foldersOf(room, graph))).toEqual([]);
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
      importsOf(readSource(file)).flatMap(({ specifier }) => importedFile(file, specifier) ?? []),
    ]),
  );
}

/** The folders that are divided: rooms, and folders of rooms. */
function roomFolders(): string[] {
  const folders = new Set(sourceFiles().map((file) => path.posix.dirname(file)));
  const parents = [...folders].map((folder) => path.posix.dirname(folder));
  const isInside = (parent: string) => SOURCE_FOLDERS.some((folder) => parent.startsWith(`${folder}/`));
  return [...new Set(parents)].filter(isInside).sort();
}

/** The graph seen from `room`: each of its folders is one node, each of its own files another. */
function foldersOf(room: string, graph: ImportGraph): ImportGraph {
  const nodeOf = (file: string) => `${room}/${file.slice(room.length + 1).split("/")[0]}`;
  const folded = new Map<string, string[]>();
  for (const [file, imported] of graph) {
    const inside = imported.filter((target) => target.startsWith(`${room}/`)).map(nodeOf);
    const node = nodeOf(file);
    folded.set(node, [...(folded.get(node) ?? []), ...inside.filter((target) => target !== node)]);
  }
  return folded;
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
