// src/observability: logger and metrics behind interfaces of this project
import { destination as openDestination, type Logger as PinoLogger, pino, stdTimeFunctions } from "pino";
import { maskControls } from "./mask-controls.ts";
import { redactFields, redactText } from "./redact.ts";

type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** `auto`: text if standard error is a terminal, else JSON. */
type LogFormat = "auto" | "text" | "json";

/**
 * A log line's fields besides the message, which may include nested objects and errors. Secrets
 * under known names are replaced.
 */
export type LogFields = Readonly<Record<string, unknown>>;

/** The logging interface for all rooms. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** Returns a logger that adds `fields` to each of its lines. */
  child(fields: LogFields): Logger;
}

/** The process's logger. */
export interface LeveledLogger extends Logger {
  /** Takes effect at once, also for children. */
  configure(logging: Logging): void;
}

interface Logging {
  readonly level: LogLevel;
  readonly format: LogFormat;
}

interface LoggerOptions extends Partial<Logging> {
  readonly level: LogLevel;
  /** Receives whole lines, each with its newline; defaults to standard error. */
  readonly destination?: { write(line: string): void };
}

/**
 * Writes one JSON object a line, or text for people. Writes synchronously, so that a crash loses no
 * line; the gateway logs per session, never per chunk.
 */
export function createLogger({ level, format = "auto", destination }: LoggerOptions): LeveledLogger {
  const options = {
    // This wrapper filters by level: a pino child would keep the level of its creation.
    level: "debug",
    base: { pid: process.pid },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  const sink = destination ?? openDestination({ dest: 2, sync: true });
  const isTerminal = destination === undefined && process.stderr.isTTY;
  const current: Writable<Logging> = { level, format };
  const write = (line: string): void => {
    const isText = current.format === "text" || (current.format === "auto" && isTerminal);
    sink.write(isText ? logText(line) : line);
  };
  return new RedactingLogger(pino(options, { write }), current);
}

const SEVERITY: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3, silent: 4 };

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

class RedactingLogger implements LeveledLogger {
  readonly #pino: PinoLogger;
  readonly #current: Writable<Logging>;

  constructor(lines: PinoLogger, current: Writable<Logging>) {
    this.#pino = lines;
    this.#current = current;
  }

  configure({ level, format }: Logging): void {
    this.#current.level = level;
    this.#current.format = format;
  }

  debug(fields: LogFields, message: string): void {
    this.#write("debug", fields, message);
  }

  info(fields: LogFields, message: string): void {
    this.#write("info", fields, message);
  }

  warn(fields: LogFields, message: string): void {
    this.#write("warn", fields, message);
  }

  error(fields: LogFields, message: string): void {
    this.#write("error", fields, message);
  }

  child(fields: LogFields): Logger {
    return new RedactingLogger(this.#pino.child(redactFields(fields)), this.#current);
  }

  #write(level: "debug" | "info" | "warn" | "error", fields: LogFields, message: string): void {
    if (SEVERITY[level] >= SEVERITY[this.#current.level]) {
      // pino would take `%` for a format, so the message is an argument.
      this.#pino[level](redactFields(fields), "%s", redactText(message));
    }
  }
}

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
function logText(json: string): string {
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
