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

/** `file`: title, several behind semicolons. */
function twinsIn(cell: string): { file: string; title: string }[] {
  return Array.from(cell.matchAll(/`(test\/[^`]+)`: (.+?)(?=; `test\/|$)/g), ([, file = "", title = ""]) => ({
    file,
    title,
  }));
}

describe.each([
  { document: "docs/evidence/upstream-tests.md", fewest: 110 },
  { document: "docs/evidence/upstream-tests-probes.md", fewest: 50 },
  { document: "docs/evidence/kep-tests.md", fewest: 25 },
])("$document", ({ document, fewest }) => {
  const rows = rowsOf(document);
  it("gives each upstream test a twin or a reason", () => {
    expect(rows.length).toBeGreaterThan(fewest);
    expect(rows.filter(({ twin }) => !twin.startsWith("left out: ") && twinsIn(twin).length === 0)).toEqual(
      [],
    );
  });

  it("names only tests that exist", () => {
    const missing = rows
      .flatMap(({ twin }) => twinsIn(twin))
      .filter(({ file, title }) => {
        const location = path.join(root, file);
        return !existsSync(location) || !readFileSync(location, "utf8").includes(title);
      });
    expect(missing).toEqual([]);
  });
});
