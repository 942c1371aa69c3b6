import { complete, DIRECTIVES, type NameSource } from "./complete.ts";

/** The user waits for the shell, and the shell waits for this answer. */
const NAMES_TIMEOUT_MS = 2_000;

/**
 * `sluice __complete WORDS...`: prints one candidate a line, with a tab and its description, and
 * last `:` and the directive, like programs built with Cobra (spf13/cobra, completions.go). Never
 * fails; omits names that take too long.
 */
export async function answerShell(words: readonly string[]): Promise<number> {
  const { candidates, directive } = await complete(words, namesInTime).catch(() => ({
    candidates: [],
    directive: DIRECTIVES.nothing,
  }));
  const lines = candidates.map(({ text, description }) => (description ? `${text}\t${description}` : text));
  process.stdout.write(`${[...lines, `:${directive}`].join("\n")}\n`);
  // A slow look-up must not keep the shell waiting.
  process.exit(0);
}

const namesInTime: NameSource = async (...selection) => {
  const { knownNames } = await import("./known-names.ts");
  const late = new Promise<readonly string[]>((resolve) => setTimeout(resolve, NAMES_TIMEOUT_MS, []));
  return Promise.race([knownNames(...selection), late]);
};
