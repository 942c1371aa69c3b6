import type { Completion, Flag, FlagTable } from "../../config/flag.ts";
import type { Command } from "../command.ts";
import { COMMANDS } from "../command-list.ts";
import { connectionFlags } from "../commands/connection-flags.ts";
import { HELP_FLAG } from "../parse-flags.ts";

/** The user waits for the shell, and the shell waits for this answer. */
const NAMES_TIMEOUT_MS = 2_000;

/**
 * What else the shell should do with the candidates: bits of Cobra's ShellCompDirective, which
 * kubectl uses, too.
 */
const DIRECTIVES = { files: 0, nothing: 4, folders: 16 } as const;

interface Candidate {
  readonly text: string;
  readonly description?: string;
}

interface Candidates {
  readonly candidates: readonly Candidate[];
  readonly directive: number;
}

const NOTHING: Candidates = { candidates: [], directive: DIRECTIVES.nothing };
const FILES: Candidates = { candidates: [], directive: DIRECTIVES.files };

/** The names of one kind in a kubeconfig or its cluster, selected by the flags typed so far. */
type NameSource = (
  kind: Exclude<Completion, "file" | "folder">,
  command: Command,
  words: readonly string[],
) => Promise<readonly string[]>;

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

/**
 * Candidates for the last of `words`, which follow `sluice` on the command line. The final one
 * may be empty.
 */
export async function complete(words: readonly string[], names: NameSource): Promise<Candidates> {
  const last = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const at = indexOfOperand(before, connectionFlags);
  const name = at === undefined ? undefined : before[at];
  if (at === undefined || name === undefined) return commandOrFlag(before, last, names);
  const listed = COMMANDS.find((candidate) => candidate.name === name);
  if (listed === undefined) return NOTHING;
  const { command } = await listed.load();
  const own = before.filter((_, index) => index !== at);
  if (command.takesCommand && own.includes("--")) return FILES;
  return inCommand(command, own, last, names);
}

async function commandOrFlag(
  before: readonly string[],
  last: string,
  names: NameSource,
): Promise<Candidates> {
  const flags: FlagTable = connectionFlags;
  if (last.startsWith("-") || awaitedFlag(before, flags) !== undefined) {
    return inCommand({ usage: [], description: "", flags, examples: [] }, before, last, names);
  }
  const commands = COMMANDS.map(({ name, summary }) => ({ text: name, description: summary }));
  return { candidates: startingWith(last, commands), directive: DIRECTIVES.nothing };
}

async function inCommand(
  command: Command,
  before: readonly string[],
  last: string,
  names: NameSource,
): Promise<Candidates> {
  const table: FlagTable = { ...command.flags, ...HELP_FLAG };
  const awaited = awaitedFlag(before, table);
  const given = awaited === undefined ? before : before.slice(0, -1);
  if (awaited !== undefined) return values(awaited, last, "");
  const [, inlineName, value = ""] = /^--([^=]+)=(.*)$/s.exec(last) ?? [];
  const inline = inlineName !== undefined && Object.hasOwn(table, inlineName) ? table[inlineName] : undefined;
  if (inline !== undefined) return values(inline, value, `--${inlineName}=`);
  if (last.startsWith("-")) return { candidates: flagsFor(last, table), directive: DIRECTIVES.nothing };
  const operand = command.operands?.[operandsIn(before, table)] ?? undefined;
  return operand === undefined ? NOTHING : values(operand, last, "");

  async function values(
    { choices, completes }: Pick<Flag, "choices" | "completes">,
    text: string,
    prefix: string,
  ): Promise<Candidates> {
    if (completes === "file") return FILES;
    if (completes === "folder") return { candidates: [], directive: DIRECTIVES.folders };
    const found = choices ?? (completes === undefined ? [] : await names(completes, command, given));
    const candidates = startingWith(
      text,
      found.map((each) => ({ text: each })),
    );
    return {
      candidates: candidates.map((each) => ({ text: prefix + each.text })),
      directive: DIRECTIVES.nothing,
    };
  }
}

function flagsFor(text: string, table: FlagTable): Candidate[] {
  const rows = Object.entries(table)
    .filter(([name, { isHidden }]) => isHidden !== true && name.length > 1)
    .map(([name, { help }]) => ({ text: `--${name}`, description: help }));
  return startingWith(text === "-" ? "--" : text, rows);
}

function startingWith(text: string, candidates: readonly Candidate[]): Candidate[] {
  return candidates.filter((candidate) => candidate.text.startsWith(text));
}

/** The flag whose value the next word is. */
function awaitedFlag(before: readonly string[], table: FlagTable): Flag | undefined {
  let awaited: Flag | undefined;
  for (const word of before) awaited = awaited === undefined ? flagAwaitingValue(word, table) : undefined;
  return awaited;
}

function operandsIn(before: readonly string[], table: FlagTable): number {
  let count = 0;
  for (let rest = before; ; count += 1) {
    const at = indexOfOperand(rest, table);
    if (at === undefined) return count;
    rest = rest.slice(at + 1);
  }
}

/** The index of the first word that is neither a flag nor a flag's value. */
function indexOfOperand(words: readonly string[], table: FlagTable): number | undefined {
  let awaited: Flag | undefined;
  for (const [index, word] of words.entries()) {
    if (awaited === undefined && !(word.startsWith("-") && word !== "-")) return index;
    awaited = awaited === undefined ? flagAwaitingValue(word, table) : undefined;
  }
  return undefined;
}

/** The flag that `word` names without a value: `--namespace`, `-n`, and `-itn`. */
function flagAwaitingValue(word: string, table: FlagTable): Flag | undefined {
  const [, long, letters] = /^(?:--([^=]+)|-(\w+))$/s.exec(word) ?? [];
  if (long !== undefined) return Object.hasOwn(table, long) ? withValue(table[long]) : undefined;
  const byLetter = (letter: string) => Object.values(table).find(({ short }) => short === letter);
  for (const [index, letter] of [...(letters ?? "")].entries()) {
    const flag = withValue(byLetter(letter));
    if (flag !== undefined) return index === (letters ?? "").length - 1 ? flag : undefined;
  }
  return undefined;
}

function withValue(flag: Flag | undefined): Flag | undefined {
  return flag?.value === undefined ? undefined : flag;
}
