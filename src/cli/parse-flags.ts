import { type ParseArgsConfig, parseArgs } from "node:util";
import { withoutUserinfo } from "@sluice/client/internal/config/configuration-error";
import { nearestName } from "@sluice/client/internal/config/nearest-name";
import type { Flag, FlagTable } from "../config/flag.ts";
import { type Command, type Invocation, type Operand, UsageError } from "./command.ts";

/** The flag that every command accepts. */
export const HELP_FLAG = { help: { short: "h", help: "show this help" } } as const satisfies FlagTable;

/** Anything with a usage is a command and accepts only the operands that it describes. */
type ParsedCommand<Flags extends FlagTable> = Pick<Command<Flags>, "flags" | "takesCommand"> &
  Partial<Pick<Command<Flags>, "usage" | "operands">>;

/**
 * Parses arguments like kubectl (spf13/pflag). `--help` takes effect before any refusal. Throws
 * UsageError.
 */
export function parseFlags<Flags extends FlagTable>(
  { flags, takesCommand, usage, operands: described }: ParsedCommand<Flags>,
  args: readonly string[],
): Invocation<Flags> | "help" {
  const dashes = takesCommand ? args.indexOf("--") : -1;
  const own = dashes === -1 ? args : args.slice(0, dashes);
  const table: FlagTable = { ...flags, ...HELP_FLAG };
  const { tokens } = parseArgs({
    args: own.map((argument) => withLongName(argument, table)),
    options: optionsOf(table),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const given = new Map<string, (string | undefined)[]>();
  const operands: string[] = [];
  const unknown: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") operands.push(token.value);
    if (token.kind !== "option") continue;
    if (Object.hasOwn(table, token.name))
      given.set(token.name, [...(given.get(token.name) ?? []), token.value]);
    else unknown.push(token.rawName);
  }
  if (given.has("help")) return "help";
  if (unknown[0] !== undefined) throw unknownFlag(unknown[0], table);
  if (usage !== undefined) refuseOperands({ operands: described, flags }, operands);
  const values = Object.entries(flags).map(([name, flag]) => [name, flagValue(name, flag, given.get(name))]);
  return {
    operands,
    command: dashes === -1 ? undefined : args.slice(dashes + 1),
    values: Object.fromEntries(values) as Invocation<Flags>["values"],
  };
}

function optionsOf(table: FlagTable): NonNullable<ParseArgsConfig["options"]> {
  return Object.fromEntries(
    Object.entries(table).map(([name, { short, value }]) => [
      name,
      { type: value === undefined ? "boolean" : "string", ...(short !== undefined && { short }) },
    ]),
  );
}

/** Gives `-i=false` and `-v=6` their long names, because parseArgs accepts no `=` after a letter. */
function withLongName(argument: string, table: FlagTable): string {
  const [, letter, rest] = /^-(\w)(=.*)$/s.exec(argument) ?? [];
  const name = Object.keys(table).find((key) => letter !== undefined && table[key]?.short === letter);
  return name === undefined ? argument : `--${name}${rest}`;
}

function flagValue(name: string, flag: Flag, given: readonly (string | undefined)[] = []): unknown {
  const texts = given.length === 0 && flag.default !== undefined ? [flag.default] : given;
  const values = texts.map((text) => read(name, flag, text));
  const isMissing = values.length === 0 || (flag.value === undefined && values.at(-1) === false);
  if (flag.isRequired && isMissing) {
    const advice = flag.advice === undefined ? "" : `: ${flag.advice}`;
    throw new UsageError(`${spelled(name, flag)} is required${advice}`, { showsUsage: true });
  }
  if (flag.isRepeatable) return values;
  return values.at(-1) ?? (flag.value === undefined ? false : undefined);
}

/** The flag's preferred spelling: `-f FILE`, `--dry-run`. */
function spelled(name: string, { short, value }: Flag): string {
  const flag = short === undefined ? `--${name}` : `-${short}`;
  return value === undefined ? flag : `${flag} ${value}`;
}

/**
 * Throws UsageError if a command without operands gets some; suggests the flag if a file's flag was
 * forgotten.
 */
function refuseOperands(
  { operands, flags }: { readonly operands: readonly Operand[] | undefined; readonly flags: FlagTable },
  given: readonly string[],
): void {
  const [first] = given;
  if (first === undefined || operands !== undefined) return;
  const [name, flag] =
    Object.entries(flags).find(([, row]) => row.isRequired && row.value !== undefined) ?? [];
  const remedy =
    name === undefined || flag === undefined
      ? ""
      : `; did you mean ${spelled(name, { ...flag, value: shown(first) })}?`;
  throw new UsageError(`unexpected argument ${JSON.stringify(shown(first))}${remedy}`, {
    showsUsage: true,
  });
}

/** Characters of a value that messages show. */
const MAX_SHOWN = 80;

/** A flag's URL may lack its scheme. */
function shown(text: string, kind?: string): string {
  const url = kind === "URL" && !text.includes("://") ? text.replace(/^.*@/s, "xxxxx@") : text;
  return withoutUserinfo(url).slice(0, MAX_SHOWN);
}

function read(name: string, { value, choices, parse }: Flag, text: string | undefined): unknown {
  if (value === undefined) return readSwitch(name, text);
  if (text === undefined) throw new UsageError(`flag needs an argument: --${name} ${value}`);
  if (choices !== undefined && !choices.includes(text)) {
    throw new UsageError(
      `--${name} ${shown(text)}: must be ${choices.join(", ").replace(/, ([^,]*)$/, " or $1")}`,
    );
  }
  try {
    return parse === undefined ? text : parse(text);
  } catch (error) {
    throw new UsageError(`--${name} ${shown(text, value)}: ${(error as Error).message}`);
  }
}

/** The words of Go's strconv.ParseBool. */
function readSwitch(name: string, text: string | undefined): boolean {
  if (text === undefined || /^(?:1|t|T|true|TRUE|True)$/.test(text)) return true;
  if (/^(?:0|f|F|false|FALSE|False)$/.test(text)) return false;
  throw new UsageError(`--${name}=${shown(text)}: must be true or false`);
}

function unknownFlag(rawName: string, table: FlagTable): UsageError {
  if (!rawName.startsWith("--")) return new UsageError(`unknown shorthand flag: ${rawName}`);
  const known = Object.keys(table).filter((name) => table[name]?.isHidden !== true);
  const nearest = nearestName(rawName.slice(2), known);
  return new UsageError(
    `unknown flag: ${rawName}${nearest === undefined ? "" : `; did you mean --${nearest}?`}`,
  );
}
