import { describe, expect, it } from "vitest";
import { readSource, typeScriptFilesIn } from "./source-files.ts";

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
