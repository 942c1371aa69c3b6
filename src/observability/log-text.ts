import { maskControls } from "./mask-controls.ts";

interface ErrorFields {
  readonly name: string;
  readonly message: string;
  readonly code?: string | number;
  readonly stack?: string;
}

/**
 * Formats a JSON log line for people: time, level, message, fields, then the indented stacks of
 * errors. No value can move a terminal's cursor.
 */
export function logText(json: string): string {
  const { time, level, msg, pid: _, ...fields } = JSON.parse(json) as Readonly<Record<string, unknown>>;
  const words = Object.entries(fields).map(([name, value]) => `${name}=${valueText(value)}`);
  const stacks = Object.values(fields).flatMap((value) => (isError(value) ? stackLines(value) : []));
  const line = [time, String(level).toUpperCase().padEnd(5), quietly(String(msg)), ...words].join(" ");
  return `${[line, ...stacks].join("\n")}\n`;
}

function valueText(value: unknown): string {
  if (isError(value)) {
    const code = value.code === undefined ? "" : ` (${value.code})`;
    return JSON.stringify(quietly(`${value.name}: ${value.message}${code}`));
  }
  if (typeof value === "string" && /^[^\s"=\\]+$/.test(value)) return quietly(value);
  return quietly(JSON.stringify(value));
}

function isError(value: unknown): value is ErrorFields {
  return typeof value === "object" && value !== null && "name" in value && "message" in value;
}

/** Drops the first lines, which repeat name and message. */
function stackLines({ stack = "" }: ErrorFields): string[] {
  const lines = stack.split("\n").filter((line) => /^\s+at /.test(line));
  return lines.map((line) => `    ${quietly(line.trim())}`);
}

function quietly(text: string): string {
  return maskControls(text).replace(/[\t\n]/g, " ");
}
