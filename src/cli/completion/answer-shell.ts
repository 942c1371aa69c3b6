import { complete, DIRECTIVES, type NameSource } from "./complete.ts";

/** A shell waits for the answer while its user does. */
export const NAMES_TIMEOUT_MS = 2_000;

/**
 * `sluice __complete WORDS...`: prints a candidate a line, a tab and its description, and last `:` and the directive, as programs built
 * with Cobra do (spf13/cobra, completions.go). Never fails; what cannot be looked up in time is left out.
 */
export async function answerShell(words: readonly string[]): Promise<number> {
  const { candidates, directive } = await complete(words, namesInTime).catch(() => ({
    candidates: [],
    directive: DIRECTIVES.nothing,
  }));
  const lines = candidates.map(({ text, description }) => (description ? `${text}\t${description}` : text));
  process.stdout.write(`${[...lines, `:${directive}`].join("\n")}\n`);
  // A look-up that is late must not keep the shell waiting.
  process.exit(0);
}

const namesInTime: NameSource = async (...selection) => {
  const { knownNames } = await import("./known-names.ts");
  const late = new Promise<readonly string[]>((resolve) => setTimeout(resolve, NAMES_TIMEOUT_MS, []));
  return Promise.race([knownNames(...selection), late]);
};
