import type { Flag, FlagTable } from "../config/flag.ts";
import type { Command } from "./command.ts";
import { COMMAND_GROUPS, type ListedCommand } from "./command-list.ts";
import { HELP_FLAG } from "./parse-flags.ts";

/**
 * The limits of help's width, whatever the terminal's width: shorter lines break tables, longer
 * ones are hard to read.
 */
const [MIN_WIDTH, MAX_WIDTH] = [80, 100];
/** If the left column is wider, the text moves below it. */
const MAX_LEFT = 34;

const DEFAULT_GROUP = "Flags";

/** The columns that help uses on this terminal. */
export function helpWidth(columns: number | undefined): number {
  return Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, columns ?? MAX_WIDTH));
}

/** The text of `sluice NAME --help`. */
export function commandHelp(name: string, command: Command, width: number): string {
  const { usage, description, operands = [], examples, exitCodes } = command;
  const flags = flagGroups(command.flags).map(([title, group]) =>
    section(
      title,
      table(
        group.map(([flag, row]) => [flagText(flag, row), sentenceOf(row)]),
        width,
      ),
    ),
  );
  const arguments_ = operands.map((operand): Row => [operand.name, operand.help]);
  return [
    wrap(description, width).join("\n").concat("\n"),
    section("Usage", usage.map((line) => `  sluice ${name} ${line}\n`).join("")),
    ...(operands.length === 0 ? [] : [section("Arguments", table(arguments_, width))]),
    ...flags,
    section("Examples", examples.map(({ title, line }) => `  # ${title}\n  ${line}\n`).join("\n")),
    ...(exitCodes === undefined
      ? []
      : [section("Exit codes", `${wrap(exitCodes, width - 2, 2).join("\n")}\n`)]),
  ].join("\n");
}

/** Help with its command lines as the user types them: `sluice`, or `kubectl sluice`. */
export function asTyped(program: string, help: string): string {
  return help.replace(/^( *|.*\| )sluice (?=[-A-Za-z])/gm, `$1${program} `);
}

/** The text of `sluice --help`. */
export function programHelp(commands: readonly ListedCommand[], columns: number): string {
  const longest = Math.max(...commands.map(({ name }) => name.length));
  const groups = COMMAND_GROUPS.map((group) => {
    const rows = commands.filter((listed) => listed.group === group);
    return `${group}:\n${table(
      rows.map(({ name, summary }) => [name.padEnd(longest), summary]),
      columns,
    )}`;
  });
  return `The streaming front door of Kubernetes nodes: exec, attach, cp and port-forward.

Usage:
  sluice COMMAND [flags]

${groups.join("\n")}
sluice COMMAND --help shows the flags and examples of a command, sluice --version the version.
`;
}

/** Flags by heading, in the table's order; those without a heading come first. Hidden flags are left out. */
export function flagGroups(flags: FlagTable): [title: string, flags: [name: string, flag: Flag][]][] {
  const groups = new Map<string, [string, Flag][]>([[DEFAULT_GROUP, []]]);
  for (const [name, flag] of Object.entries<Flag>({ ...flags, ...HELP_FLAG })) {
    if (flag.isHidden) continue;
    const title = flag.group ?? DEFAULT_GROUP;
    groups.set(title, [...(groups.get(title) ?? []), [name, flag]]);
  }
  return [...groups];
}

/** `-c, --container NAME`. */
export function flagText(name: string, { short, value }: Flag): string {
  const long = name.length === 1 ? "" : `--${name}`;
  const both = [short === undefined ? "" : `-${short}`, long].filter((text) => text !== "").join(", ");
  return `${short === undefined ? "    " : ""}${both}${value === undefined ? "" : ` ${value}`}`;
}

/** Describes the flag and its value. */
export function sentenceOf({
  help,
  value,
  choices,
  isRepeatable,
  isRequired,
  default: fallback,
}: Flag): string {
  const notes = [
    ...(isRequired ? ["required"] : []),
    ...(choices === undefined || choices.join("|") === value ? [] : [`one of ${choices.join(", ")}`]),
    ...(isRepeatable ? ["repeatable"] : []),
    ...(fallback === undefined ? [] : [`default: ${fallback}`]),
  ];
  return notes.length === 0 ? help : `${help} (${notes.join("; ")})`;
}

type Row = readonly [left: string, right: string];

/** Two columns; the text moves below a wide left entry. */
function table(rows: readonly Row[], width: number): string {
  const left = Math.max(...rows.map(([text]) => text.length));
  if (left > MAX_LEFT) {
    return rows.map(([name, text]) => `  ${name}\n${wrap(text, width, 8).join("\n")}\n`).join("");
  }
  return rows
    .map(([name, text]) => {
      const [first = "", ...more] = wrap(text, width, left + 4);
      return [`  ${name.padEnd(left)}${first.slice(left + 2)}`, ...more].join("\n").concat("\n");
    })
    .join("");
}

function section(title: string, body: string): string {
  return `${title}:\n${body}`;
}

/** Wraps at `width` columns and indents each line by `indent` blanks; a longer word gets its own line. */
function wrap(text: string, width: number, indent = 0): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(" ".repeat(indent) + word);
  }
  return lines;
}
