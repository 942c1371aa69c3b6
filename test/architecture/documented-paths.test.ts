import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { repositoryRoot } from "./source-files.ts";

const architecture = path.join(repositoryRoot, "ARCHITECTURE.md");

/** Back-quoted words that are paths of this repository, and not URLs, packages, globs or placeholders. */
const repositoryPath =
  /^(?:(?:protocols|src|test|bench|deploy|docs|scripts|\.ci)(?:\/[\w.@-]+)*\/?|[\w.-]+\.(?:md|json|ts|yml|yaml)|Dockerfile|LICENSE)$/;

describe("ARCHITECTURE.md", () => {
  it.skipIf(!existsSync(architecture))("names only paths that exist", () => {
    const named = namedPaths(readFileSync(architecture, "utf8"));
    expect(named.filter((name) => !existsSync(path.join(repositoryRoot, name)))).toEqual([]);
    expect(named.length, "a map of the house names its rooms").toBeGreaterThan(5);
  });

  it("paths are told from other back-quoted words", () => {
    const text =
      "`src/sessions/plan.ts`, `protocols/`, `README.md`; not `/exec/{ns}`, `ws`, `src/*.ts`, `node:net`, `npm test`";
    expect(namedPaths(text)).toEqual(["src/sessions/plan.ts", "protocols/", "README.md"]);
  });
});

describe("documents", () => {
  const documents = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", ...markdownIn("docs")];

  it.each(
    documents.filter((name) => existsSync(path.join(repositoryRoot, name))),
  )("%s links to files that exist", (name) => {
    const file = path.join(repositoryRoot, name);
    const links = Array.from(
      readFileSync(file, "utf8").matchAll(/\]\(([^)#\s]+)/g),
      ([, link]) => link ?? "",
    );
    const local = links.filter((link) => !/^[a-z]+:/.test(link));
    expect(local.filter((link) => !existsSync(path.join(path.dirname(file), link)))).toEqual([]);
  });
});

describe("tables of a folder's files", () => {
  const tables = markdownIn("protocols")
    .map((name) => ({
      folder: path.dirname(name),
      text: readFileSync(path.join(repositoryRoot, name), "utf8"),
    }))
    .filter(({ text }) => text.includes("\n| file | owns |"));

  it.each(tables)("$folder/README.md names each file, and only files that exist", ({ folder, text }) => {
    const rows = Array.from(text.matchAll(/^\| (`[^|]+) \|/gm), ([, cell = ""]) => cell);
    const named = rows.flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, name = ""]) => name));
    const files = named.filter((name) => /^[\w-]+(?:\.ts|\/)$/.test(name));
    const there = readdirSync(path.join(repositoryRoot, folder), { withFileTypes: true })
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name))
      .filter((name) => /(?:\.ts|\/)$/.test(name));
    // Most index.ts only pass on what the other files export.
    const unnamed = there.filter((name) => name !== "index.ts" && !files.includes(name));
    expect({ missing: files.filter((name) => !there.includes(name)), unnamed }).toEqual({
      missing: [],
      unnamed: [],
    });
  });
});

function markdownIn(folder: string): string[] {
  return readdirSync(path.join(repositoryRoot, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => path.join(folder, name));
}

function namedPaths(markdown: string): string[] {
  const words = Array.from(markdown.matchAll(/`([^`\n]+)`/g), ([, word]) => word ?? "");
  return [...new Set(words.filter((word) => repositoryPath.test(word)))];
}
