import { expect, it } from "vitest";
import { readSource } from "./source-files.ts";

const { version } = JSON.parse(readSource("package.json")) as { version: string };
const [, ...sections] = readSource("CHANGELOG.md").split(/^## /m);

it("CHANGELOG.md has Unreleased first, then a section for each version, the newest first", () => {
  const titles = sections.map((section) => section.split("\n")[0] ?? "");
  expect(titles[0]).toBe("Unreleased");
  const versions = titles.slice(1).map((title) => {
    expect(title).toMatch(/^\d+\.\d+\.\d+, (?:\d{4}-\d{2}-\d{2}|not yet tagged)$/);
    return title.split(",")[0] ?? "";
  });
  expect(versions[0]).toBe(version);
  const numbered = versions.toSorted((a, b) => b.localeCompare(a, "en", { numeric: true }));
  expect(versions).toEqual(numbered);
});

it("each version has upgrade notes, each with what changed in bold, before its changes", () => {
  for (const section of sections.slice(1)) {
    const [, notes = "", changes = ""] =
      /\n### Upgrade notes\n([\s\S]*)\n### Changes\n([\s\S]*)/.exec(section) ?? [];
    const lines = notes.match(/^- .*$/gm) ?? [];
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/^- \*\*[^*]+\*\*/);
    expect(changes.match(/^- /gm)?.length).toBeGreaterThan(0);
  }
});
