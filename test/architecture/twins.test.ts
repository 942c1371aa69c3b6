import path from "node:path";
import { expect, it } from "vitest";
import {
  importedFile,
  importsOf,
  readSource,
  typeScriptFilesIn,
  withoutCommentsAndStrings,
} from "./source-files.ts";

/** Their cases are still in the tests of their rooms. May only become shorter. */
const WITHOUT: readonly string[] = ["protocols/spdy/stream.ts"];

const modules = ["protocols", "src/lifecycle"]
  .flatMap(typeScriptFilesIn)
  .filter((file) => !/^protocols\/(?:dist|examples)\/|\/index\.ts$/.test(file))
  .concat("src/net/feed.ts", "src/sessions/plan.ts", "src/sessions/lifecycle.ts")
  .filter(hasBehaviour)
  // The tables beside it are its rows.
  .concat("src/api/wire-errors/wire-errors.ts");

/** A module of types and constants alone is tested by those that read it. */
function hasBehaviour(file: string): boolean {
  return /\b(?:function|class)\b/.test(withoutCommentsAndStrings(readSource(file)));
}

function twinOf(file: string): string[] {
  const name = file.replace(/^src\//, "").replace(/\.ts$/, ".test.ts");
  return [`test/unit/${name}`, `test/integration/${name}`];
}

/** Whether a test imports the module, or its room's index, itself or by a file beside it or in test/support. */
function imports(test: string, module: string, depth = 2): boolean {
  const targets = importsOf(readSource(test)).flatMap(({ specifier }) => importedFile(test, specifier) ?? []);
  const index = `${module.split("/", 2).join("/")}/index.ts`;
  return targets.some(
    (target) =>
      target === module ||
      target === index ||
      (depth > 0 && target.startsWith("test/") && imports(target, module, depth - 1)),
  );
}

const tests = new Set(typeScriptFilesIn("test"));

it("each codec, and each core of a session, has a test with its path that imports it", () => {
  const missing = modules.filter((file) => {
    const twin = twinOf(file).find((name) => tests.has(name));
    return twin === undefined || !imports(twin, file);
  });
  expect(missing.sort()).toEqual(WITHOUT);
});

it("the modules are found, and those without behaviour are not", () => {
  const names = modules.map((file) => path.posix.basename(file));
  expect(names).toEqual(
    expect.arrayContaining(["plan.ts", "huffman.ts", "session-frames.ts", "http2-error.ts", "feed.ts"]),
  );
  for (const table of ["limits.ts", "constants.ts"]) expect(names).not.toContain(table);
});
