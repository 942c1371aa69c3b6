/** One thing that is wrong with a file or a flag, and where it stands. */
export interface ConfigurationProblem {
  /** File name as the operator gave it, or the flag's name (`--feature-gates`). */
  readonly source: string;
  /** 1-based; 0 when the source has no lines (a flag). */
  readonly line: number;
  /** 1-based; 0 when only the line is known. */
  readonly column: number;
  /** `timeouts.idle`, `cluster.manifests[1]`; empty when the whole document is meant. */
  readonly path: string;
  readonly message: string;
}

/** Everything that is wrong at once, so that an operator edits the file one time. The command line exits with 2 on it. */
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
