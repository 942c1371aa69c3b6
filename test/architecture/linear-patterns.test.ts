import { describe, expect, it } from "vitest";
import { cpuMsOf } from "../support/cpu-time.ts";
import { patternsIn, sampleParts } from "../support/foreign-patterns.ts";
import { readSource, sourceFiles } from "./source-files.ts";

/** A pattern of linear time has passed so many characters long before; what has not is measured at four times as many. */
const AT_ONCE_MS = 0.5;
const CHARACTERS = 2 * 1024;
const MAX_RATIO = 2.3;
const REPEATS = 5;

/** Linear as they are called, which a test beside them shows. */
const LINEAR_IN_PLACE = new Set([
  // Cut behind the last `)`.
  "/\\$\\$|\\$\\(([^)]*)\\)/g",
]);

/** Texts that strangers could send, whatever the pattern looks for. */
const ANYTHING = ["a", "0", "A", " ", "\t", "\n", "/", "://", "\\", "-", ".", ":", "*", "=", ",", '"', "é"];

const sources = sourceFiles();
const patterns = sources.flatMap((file) =>
  patternsIn(readSource(file), file).map(({ line, pattern }) => ({ place: `${file}:${line}`, pattern })),
);
const repeating = [...new Map(patterns.map((found) => [String(found.pattern), found])).values()].filter(
  ({ pattern }) => /[*+]|\{\d+,\}/.test(pattern.source) && !LINEAR_IN_PLACE.has(String(pattern)),
);

describe("regular expressions", () => {
  // Hundreds of patterns, each with tens of texts: half a minute of CPU.
  it("take time that grows as their text does", { timeout: 300_000 }, () => {
    expect(repeating.length).toBeGreaterThan(120);
    const slow = repeating.flatMap(({ place, pattern }) => {
      const text = slowestText(pattern);
      return text === undefined ? [] : [`${place} ${pattern} with ${JSON.stringify(text)} again and again`];
    });
    expect(slow).toEqual([]);
  });

  it.each([
    ["a free start", /([a-z][a-z0-9+.-]*:\/\/)[^/\s"'@]+@/gi],
    ["slashes at the end", /\/+$/],
    ["a lazy middle", /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g],
    ["two neighbours", /^\s*\s*x/],
    ["a start anywhere before the end", /\S+$/],
    ["nested repetition", /^(?:a+b?)+$/],
  ])("are found when they do not: %s", (_, pattern) => {
    expect(slowestText(pattern)).toBeDefined();
  });

  it("are found where they are built of named texts", () => {
    const found = patternsIn("const PART = 'a+';\nconst whole = new RegExp(`^$" + "{PART}$`, 'm');", "a.ts");
    expect(found).toEqual([{ line: 2, pattern: /^a+$/m }]);
    expect(() => patternsIn("new RegExp(process.argv[2])", "a.ts")).toThrow("unknown text");
  });
});

/** The part of a text that costs more than in proportion, when it is repeated behind the beginning of a match. */
function slowestText(pattern: RegExp): string | undefined {
  for (const [prefix, part] of attemptsOn(pattern)) {
    // The end of the text is what a pattern with `$` fails at: a control character, or a blank.
    for (const end of ["\u0000", " "]) {
      const text = (characters: number) => {
        return `${prefix}${part.repeat(Math.ceil(characters / part.length)).slice(0, characters)}${end}`;
      };
      if (isSlow(pattern, text, Math.max(CHARACTERS, (CHARACTERS / 2) * part.length))) return prefix + part;
    }
  }
  return undefined;
}

function isSlow(pattern: RegExp, text: (characters: number) => string, characters: number): boolean {
  // Nested repetition doubles its time with each character, and never comes back from a long text.
  for (const few of [12, 16, 20, 24, 28, 32]) {
    if (leastMs(pattern, text(few), AT_ONCE_MS) > AT_ONCE_MS) return true;
  }
  const atOnceMs = (AT_ONCE_MS * characters) / CHARACTERS;
  if (leastMs(pattern, text(characters), atOnceMs) <= atOnceMs) return false;
  return leastMs(pattern, text(4 * characters), 0) / leastMs(pattern, text(characters), 0) > MAX_RATIO ** 2;
}

/** The least of several times, or the first that is no more than `enoughMs`. */
function leastMs(pattern: RegExp, text: string, enoughMs: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < REPEATS && least > enoughMs; attempt++) {
    // All matches, as the callers of global patterns ask for; a single one otherwise.
    const ms = cpuMsOf(() => text.replace(pattern, ""));
    least = Math.min(least, ms);
  }
  return least;
}

/** What stands in front, and what is repeated behind it. */
function attemptsOn(pattern: RegExp): (readonly [prefix: string, part: string])[] {
  const parts = sampleParts(pattern.source);
  const beginnings = [...new Set(parts.map((_, index) => parts.slice(0, index + 1).join("")))];
  const neighbours = parts.map((part, index) => part + (parts[index + 1] ?? ""));
  const repeated = [...new Set([...ANYTHING, ...parts, ...neighbours])];
  return [
    ...["", ...beginnings].flatMap((prefix) => repeated.map((part) => [prefix, part] as const)),
    ...beginnings.map((part) => ["", part] as const),
  ];
}
