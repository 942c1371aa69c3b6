import { systemErrorReason } from "./system-error.ts";

/** A problem in a file or flag, and its position. */
export interface ConfigurationProblem {
  /** The file's name as the operator gave it, or the flag's name (`--feature-gates`). */
  readonly source: string;
  /** Counts from 1; 0 if the source is a flag. */
  readonly line: number;
  /** Counts from 1; 0 if only the line is known. */
  readonly column: number;
  /** `timeouts.idle`, `cluster.manifests[1]`; empty for the whole document. */
  readonly path: string;
  readonly message: string;
  /** The source itself cannot be read; the message is why. */
  readonly isUnread?: true;
}

/**
 * Reports all problems together, so that the operator edits the file once. Commands exit with 2.
 */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly problems: readonly ConfigurationProblem[];

  constructor(problems: readonly ConfigurationProblem[]) {
    super(problems.map(formatProblem).join("\n"));
    this.problems = problems;
  }
}

/** A file that cannot be read: one problem, of the whole file. */
export function unreadFile(source: string, error: unknown): ConfigurationError {
  const message = systemErrorReason(error);
  return new ConfigurationError([{ source, line: 0, column: 0, path: "", message, isUnread: true }]);
}

/** `gateway.yaml:12:3: timeouts.idle: ...`: editors and terminals turn this into a link. */
function formatProblem(problem: ConfigurationProblem): string {
  const place = [problem.source, problem.line, problem.column].filter((part) => part !== 0).join(":");
  return problem.path === ""
    ? `${place}: ${problem.message}`
    : `${place}: ${problem.path}: ${problem.message}`;
}

/** `["cluster", "manifests", 1]` -> `cluster.manifests[1]`. */
export function formatPath(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === "number") {
      return `${text}[${part}]`;
    }
    return text === "" ? part : `${text}.${part}`;
  }, "");
}

/** Replaces user and password of URLs, for an error that repeats them. Call it before the text is cut. */
export function withoutUserinfo(text: string): string {
  return text.replace(/:\/\/[^\s"']+/g, (rest) => {
    const end = rest.lastIndexOf("@");
    return end === -1 ? rest : `://xxxxx${rest.slice(end)}`;
  });
}

/** Limit for a line or message that an error quotes. */
export const MAX_QUOTED_CHARACTERS = 100;

/** A secret field's value, or a long word that may be a secret. */
const CREDENTIAL = /((?:token|password|secret|data|key)["']?\s*:\s*).*|[\w+/=.-]{32,}/i;

/** The line that begins at `start`, for an error; without secrets and terminal controls. */
export function quotedLine(text: string, start: number): string {
  const end = text.indexOf("\n", start);
  const line = text.slice(start, end === -1 ? undefined : end).trim();
  return JSON.stringify(
    withoutUserinfo(line.slice(0, MAX_LINE_CHARACTERS))
      .replace(CREDENTIAL, "$1…")
      .slice(0, MAX_QUOTED_CHARACTERS),
  );
}

/** The part of the line that is searched for secrets. */
const MAX_LINE_CHARACTERS = 1_000;
