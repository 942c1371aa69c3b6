// src/observability: logger and metrics behind interfaces of this project

import { destination as openDestination, type Logger as PinoLogger, pino, stdTimeFunctions } from "pino";
import { logText } from "./log-text.ts";
import { redactFields, redactText } from "./redact.ts";

export type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

/** `auto`: text where standard error is a terminal, else JSON. */
export type LogFormat = "auto" | "text" | "json";

/** What is said besides the message; nested objects and errors are fine. Secrets under known names are replaced. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Everything that the other folders know of logging. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** A logger that adds `fields` to each of its lines. */
  child(fields: LogFields): Logger;
}

/** The logger of a process. */
export interface LeveledLogger extends Logger {
  /** From now on, for its children as well. */
  configure(logging: Logging): void;
}

export interface Logging {
  readonly level: LogLevel;
  readonly format: LogFormat;
}

export interface LoggerOptions extends Partial<Logging> {
  readonly level: LogLevel;
  /** Gets whole lines, each with its newline; standard error when absent. */
  readonly destination?: { write(line: string): void };
}

/**
 * One JSON object per line, or text for people. Written synchronously, so that the last line of a process that exits or crashes is there;
 * the gateway logs per session, never per chunk.
 */
export function createLogger({ level, format = "auto", destination }: LoggerOptions): LeveledLogger {
  const options = {
    // Ours decides: a child of pino's would keep the level that it was made with.
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
      // `%` would be taken for a format, so the message is given as a value of its own.
      this.#pino[level](redactFields(fields), "%s", redactText(message));
    }
  }
}
