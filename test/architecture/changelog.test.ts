import { expect, it } from "vitest";
import { readSource } from "./source-files.ts";

const { version } = JSON.parse(readSource("package.json")) as { version: string };
const [, ...sections] = readSource("CHANGELOG.md").split(/^## /m);

const UNRELEASED = "Unreleased";
const isUntagged = (title: string): boolean => title.endsWith(", not yet tagged");

it("CHANGELOG.md has what is not released first, then a section for each version, the newest first", () => {
  const titles = sections.map((section) => section.split("\n")[0] ?? "");
  // Before its tag a version's own section takes what is new.
  const [first = ""] = titles;
  if (!isUntagged(first)) expect(first).toBe(UNRELEASED);
  const versions = titles.slice(isUntagged(first) ? 0 : 1).map((title) => {
    expect(title).toMatch(/^\d+\.\d+\.\d+, (?:\d{4}-\d{2}-\d{2}|not yet tagged)$/);
    return title.split(",")[0] ?? "";
  });
  expect(titles.slice(1).filter(isUntagged)).toEqual([]);
  expect(versions[0]).toBe(version);
  const numbered = versions.toSorted((a, b) => b.localeCompare(a, "en", { numeric: true }));
  expect(versions).toEqual(numbered);
});

it("each version has upgrade notes, each with what changed in bold, before its changes", () => {
  for (const section of sections.filter((text) => !text.startsWith(UNRELEASED))) {
    const [, notes = "", changes = ""] =
      /\n### Upgrade notes\n([\s\S]*)\n### Changes\n([\s\S]*)/.exec(section) ?? [];
    const lines = notes.match(/^- .*$/gm) ?? [];
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/^- \*\*[^*]+\*\*/);
    expect(changes.match(/^- /gm)?.length).toBeGreaterThan(0);
  }
});
