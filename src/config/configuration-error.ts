/** One problem of a file or a flag, and its place. */
export interface ConfigurationProblem {
  /** File name as the operator gave it, or the flag's name (`--feature-gates`). */
  readonly source: string;
  /** From 1; 0 where the source has no lines, as a flag. */
  readonly line: number;
  /** From 1; 0 where only the line is known. */
  readonly column: number;
  /** `timeouts.idle`, `cluster.manifests[1]`; empty for the whole document. */
  readonly path: string;
  readonly message: string;
}

/** All problems at once, so that an operator edits the file one time. Commands exit with 2. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly problems: readonly ConfigurationProblem[];

  constructor(problems: readonly ConfigurationProblem[]) {
    super(problems.map(formatProblem).join("\n"));
    this.problems = problems;
  }
}

/** `gateway.yaml:12:3: timeouts.idle: ...`: the form that editors and terminals turn into a link. */
export function formatProblem(problem: ConfigurationProblem): string {
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

/** Of a line, or of a message, in an error. */
export const MAX_QUOTED_CHARACTERS = 100;

/** The value of a field that holds a secret, and anything that may be one. */
const CREDENTIAL = /((?:token|password|secret|data|key)["']?\s*:\s*).*|[\w+/=.-]{32,}/i;

/** The line that begins at `start`, for an error: without secrets, and without what a terminal would obey. */
export function quotedLine(text: string, start: number): string {
  const end = text.indexOf("\n", start);
  const line = text.slice(start, end === -1 ? undefined : end).trim();
  return JSON.stringify(
    line.slice(0, MAX_LINE_CHARACTERS).replace(CREDENTIAL, "$1…").slice(0, MAX_QUOTED_CHARACTERS),
  );
}

/** Looked at for secrets. */
const MAX_LINE_CHARACTERS = 1_000;
