import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");

interface Row {
  readonly upstream: string;
  readonly twin: string;
}

function rowsOf(document: string): Row[] {
  return readFileSync(path.join(root, document), "utf8")
    .split("\n")
    .flatMap((line): Row[] => {
      const cells = /^\| (.+?) \| (.+) \|$/.exec(line);
      const [, upstream = "", twin = ""] = cells ?? [];
      return cells === null || upstream === "upstream" || upstream === "item" ? [] : [{ upstream, twin }];
    });
}

/** `file`: title, several behind semicolons; a file alone has a test of each upstream name. */
function twinsIn({ upstream, twin }: Row): { file: string; title: string }[] {
  const [, alone] = /^`(test\/[^`]+)`$/.exec(twin) ?? [];
  if (alone !== undefined) return upstream.split(", ").map((title) => ({ file: alone, title }));
  return Array.from(twin.matchAll(/`(test\/[^`]+)`: (.+?)(?=; `test\/|$)/g), ([, file = "", title = ""]) => ({
    file,
    title,
  }));
}

describe.each([
  { document: "docs/evidence/upstream-tests.md", fewest: 110 },
  { document: "docs/evidence/upstream-tests-probes.md", fewest: 50 },
  { document: "docs/evidence/kep-tests.md", fewest: 55 },
])("$document", ({ document, fewest }) => {
  const rows = rowsOf(document);
  it("gives each upstream test a twin or a reason", () => {
    expect(rows.flatMap(({ upstream }) => upstream.split(", ")).length).toBeGreaterThan(fewest);
    expect(rows.filter((row) => !row.twin.startsWith("left out: ") && twinsIn(row).length === 0)).toEqual([]);
  });

  it("names only tests that exist", () => {
    const missing = rows.flatMap(twinsIn).filter(({ file, title }) => {
      const location = path.join(root, file);
      return !existsSync(location) || !readFileSync(location, "utf8").includes(title);
    });
    expect(missing).toEqual([]);
  });
});

it("each KEP that is implemented has its section and rows", () => {
  const sections = readFileSync(path.join(root, "docs/evidence/kep-tests.md"), "utf8")
    .split(/^## /m)
    .slice(1);
  const keps = sections.map((section) => [
    section.split(":")[0],
    section.match(/^\| (?!item )/gm)?.length ?? 0,
  ]);
  expect(Object.fromEntries(keps)).toEqual({
    "KEP-1453": expect.any(Number),
    "KEP-2727": expect.any(Number),
    "KEP-4006": 19,
    "KEP-4939": expect.any(Number),
    "KEP-5999": expect.any(Number),
  });
  expect(keps.filter(([, rows]) => Number(rows) === 0)).toEqual([]);
});
