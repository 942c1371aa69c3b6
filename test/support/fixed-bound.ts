import { readFileSync } from "node:fs";

const root = new URL("../../", import.meta.url);

/** A bound that users can see: its name, its value, and what happens past it. */
export interface Bound {
  readonly name: string;
  /** The file that declares a bound that is not a field. */
  readonly file?: string;
  readonly value: string;
  readonly sentence: string;
}

/** A constant's bound, or one in an interface, with the expression of its value. */
interface SourceBound extends Bound {
  readonly expression: string;
}

/**
 * The number that docs/limits.md publishes for a constant of `file` (below the root): tests hold
 * what users read, and the constant stays private. Throws if the page has no row for it.
 */
export function fixedBound(file: string, name: string): number {
  const rows = boundsIn(readFileSync(new URL(file, root), "utf8"), file).filter((row) => row.name === name);
  const [row, other] = rows;
  if (row === undefined || other !== undefined || !isProduct(row.expression))
    throw new Error(`${file} has ${rows.length} bounds ${name}, ${row?.expression ?? "of no value"}`);
  return productOf(row.expression);
}

/**
 * Matches comments before `const NAME = 1_000;`, and before an interface's `readonly name: number;`
 * whose default follows.
 */
export function boundsIn(source: string, file: string): SourceBound[] {
  const declaration =
    /\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(?:(?:export )?const (\w+)[^=;\n]* = ([^\n]*)|readonly (\w+): number;)/g;
  return Array.from(source.matchAll(declaration), ([, comment = "", constant, initial, member]) => {
    const name = constant ?? member ?? "";
    const [, preset] = initial === undefined ? (new RegExp(`^  ${name}: (.*)`, "m").exec(source) ?? []) : [];
    const expression = (initial ?? preset ?? "").replace(/[;,]?\s*(?:\/\/.*)?$/, "");
    return {
      name,
      file,
      expression,
      value: textOfValue(name, expression),
      sentence: comment.replace(/\s*\n\s*\*?\s*/g, " ").trim(),
    };
  }).filter(({ sentence }) => isSentenceOfBound(sentence));
}

export function isSentenceOfBound(sentence: string): boolean {
  return /\bPast it\b/.test(sentence);
}

/** A product of numbers in the unit that the name ends with; any other expression unchanged. */
function textOfValue(name: string, initial: string): string {
  if (!isProduct(initial)) return `\`${initial}\``;
  const number = productOf(initial);
  if (/bytes/i.test(name)) return scaled(number, 1_024, ["B", "KiB", "MiB", "GiB"]);
  if (/characters/i.test(name) && number % 1_048_576 === 0) return `${number / 1_048_576} Mi`;
  if (!/(_MS|Ms)$/.test(name)) return number.toLocaleString("en-US");
  if (number % 3_600_000 === 0) return `${number / 3_600_000} h`;
  return number % 1_000 === 0 ? `${number / 1_000} s` : `${number} ms`;
}

function isProduct(expression: string): boolean {
  return /^[\d_. *]+$/.test(expression);
}

function productOf(expression: string): number {
  return expression
    .split("*")
    .map((factor) => Number(factor.replaceAll("_", "")))
    .reduce((product, factor) => product * factor, 1);
}

function scaled(number: number, step: number, units: readonly string[]): string {
  const [unit = "", ...larger] = units;
  if (number < step || number % step !== 0 || larger.length === 0)
    return `${number.toLocaleString("en-US")} ${unit}`.trim();
  return scaled(number / step, step, larger);
}
