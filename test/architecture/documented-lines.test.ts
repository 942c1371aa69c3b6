import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { UsageError } from "../../src/cli/command.ts";
import { COMMANDS } from "../../src/cli/command-list.ts";
import { parseFlags } from "../../src/cli/parse-flags.ts";
import { markdownFiles, repositoryRoot } from "./source-files.ts";

/** Old lines, and help as it is printed. */
const EXCEPT = ["CHANGELOG.md", "docs/cli.md"];
/** What a document leaves out, or stands for something: no mistake of its flags. */
const INCOMPLETE = / is required|must be specified|^--[\w-]+ [A-Z]|^flag needs an argument/;

/** The arguments of each line that runs `sluice`: in blocks, and in back quotes. */
function sluiceLines(markdown: string): string[][] {
  const text = markdown.replaceAll(/\\\n\s*/g, " ");
  const inBlocks =
    text.match(/^(?: {4}|\$ )?(?:\w+=\S+ )*(?:sudo |kubectl |npx |node )*\S*\bsluice(?:\.cjs)? .+$/gm) ?? [];
  const quoted = Array.from(text.matchAll(/`((?:kubectl )?sluice [^`]+)`/g), ([, line = ""]) => line);
  const isCode = (line: string): boolean => !/`|\.$/.test(line);
  return [...inBlocks.filter(isCode), ...quoted.map((line) => line.replaceAll("\n", " "))].flatMap((line) => {
    const words = wordsOf(line);
    const at = words.findIndex((word) => /(?:^|\/)sluice(?:\.cjs)?$/.test(word));
    return at === -1 ? [] : [words.slice(at + 1)];
  });
}

/** As a shell splits a line, up to what is not an argument of the first command. */
function wordsOf(line: string): string[] {
  const words = line.match(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g) ?? [];
  const end = words.findIndex((word) => /^(?:[|;&#]|[0-9]?[<>])|;$/.test(word) && !/^<[A-Z]/.test(word));
  return (end === -1 ? words : words.slice(0, end)).map((word) => word.replaceAll(/["']/g, ""));
}

async function mistakeOf([name = "", ...args]: readonly string[]): Promise<string | undefined> {
  if (name.startsWith("-") || !/^[a-z-]+$/.test(name)) return undefined;
  const listed = COMMANDS.find((command) => command.name === name);
  if (listed === undefined) return ["version", "help"].includes(name) ? undefined : `no command ${name}`;
  try {
    parseFlags((await listed.load()).command, args);
    return undefined;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return INCOMPLETE.test(error.message) ? undefined : `${name} ${args.join(" ")}: ${error.message}`;
  }
}

describe("command lines of documents", () => {
  const more = ["packages/client/README.md", "deploy/chart/README.md", "test/real/README.md"];
  const files = [...markdownFiles(), ...more].filter((file) => !EXCEPT.includes(file));
  const lines = files.map((file) => ({
    file,
    found: sluiceLines(readFileSync(path.join(repositoryRoot, file), "utf8")),
  }));

  it.each(lines.filter(({ found }) => found.length > 0))("$file", async ({ found }) => {
    const mistakes = await Promise.all(found.map(mistakeOf));
    expect(mistakes.filter((mistake) => mistake !== undefined)).toEqual([]);
  });

  it("are found in blocks and in back quotes", async () => {
    const text = "Run `sluice exec web`:\n\n    A=b sluice load exec web \\\n      --no-such > file # note\n";
    const found = sluiceLines(text);
    expect(found).toEqual([
      ["load", "exec", "web", "--no-such"],
      ["exec", "web"],
    ]);
    expect(await Promise.all(found.map(mistakeOf))).toEqual([
      "load exec web --no-such: unknown flag: --no-such",
      undefined,
    ]);
    expect(lines.flatMap((line) => line.found).length).toBeGreaterThan(130);
  });
});
