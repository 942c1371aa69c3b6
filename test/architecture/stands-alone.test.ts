import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { repositoryRoot, trackedFiles } from "./source-files.ts";

/** Joined from parts, so that this file does not name what it forbids. */
const foreign: readonly string[] = [
  ["..", "shared"].join("/"),
  ["", "work", ""].join("/"),
  ["registry", "npmjs", "org"].join("."),
  ["registry", "yarnpkg", "com"].join("."),
  ["deb", "debian", "org"].join("."),
  ["pypi", "org"].join("."),
  ["proxy", "golang", "org"].join("."),
  ["static", "crates", "io"].join("."),
  ["repo1", "maven", "org"].join("."),
];

const files = trackedFiles();

describe("the repository stands alone", () => {
  it.skipIf(files === undefined)(
    "no tracked file points outside it or names a package registry's host",
    () => {
      const pointers = (files ?? []).flatMap((file) => {
        const text = textOf(file);
        return foreign.filter((needle) => text.includes(needle)).map((needle) => `${file} names ${needle}`);
      });
      expect(pointers).toEqual([]);
    },
  );
});

/** Latin-1 keeps every byte, so binary fixtures are searched too. A tracked file that is deleted but not committed is empty. */
function textOf(file: string): string {
  try {
    return readFileSync(path.join(repositoryRoot, file), "latin1");
  } catch {
    return "";
  }
}
