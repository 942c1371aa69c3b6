/** One check of one kubectl in one combination. */
export interface SkewResult {
  readonly combination: string;
  readonly kubectl: string;
  readonly check: string;
  hasPassed: boolean;
  journey: string;
}

/** A markdown table: a row for each combination, a column for each kubectl, each cell with outcome and journeys of all checks. */
export function skewTable(results: readonly SkewResult[]): string {
  const kubectls = [...new Set(results.map(({ kubectl }) => kubectl))];
  const combinations = [...new Set(results.map(({ combination }) => combination))];
  const rows = combinations.map((combination) => {
    const cells = kubectls.map((kubectl) =>
      cellOf(results.filter((result) => result.combination === combination && result.kubectl === kubectl)),
    );
    return `| ${combination} | ${cells.join(" | ")} |`;
  });
  return [
    `| API server | node | ${kubectls.map((kubectl) => `kubectl ${kubectl}`).join(" | ")} |`,
    `| --- | --- |${" --- |".repeat(kubectls.length)}`,
    ...rows,
  ].join("\n");
}

/** Checks that travelled alike are told together: `pass: exec, attach, cp over WebSocket translate`. */
function cellOf(results: readonly SkewResult[]): string {
  const groups = new Map<string, string[]>();
  for (const { check, hasPassed, journey } of results) {
    const outcome = `${hasPassed ? "pass" : "**FAIL**"}: ${journey}`;
    groups.set(outcome, [...(groups.get(outcome) ?? []), check]);
  }
  if (groups.size === 0) return "not run";
  const [only] = groups.keys();
  if (groups.size === 1 && only !== undefined) return only;
  return Array.from(groups, ([outcome, checks]) => `${outcome} (${checks.join(", ")})`).join("<br>");
}
