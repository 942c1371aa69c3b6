/** One check of one kubectl against one node. */
export interface CheckResult {
  kubectl: string;
  node: string;
  check: string;
  hasPassed: boolean;
  /** As `WebSocket translate`. */
  path: string;
  durationMs: number;
}

/** A markdown table: a row per kubectl and node, a column per check, each cell with outcome, path and seconds. */
export function kubectlTable(results: readonly CheckResult[], checks: readonly string[]): string {
  const rows = new Map<string, string[]>();
  for (const result of results) {
    const key = `${result.kubectl} | ${result.node}`;
    const cells = rows.get(key) ?? checks.map(() => "not run");
    const seconds = (result.durationMs / 1_000).toFixed(1);
    cells[checks.indexOf(result.check)] =
      `${result.hasPassed ? "pass" : "**FAIL**"}, ${result.path}, ${seconds} s`;
    rows.set(key, cells);
  }
  return [
    `| kubectl | node | ${checks.join(" | ")} |`,
    `| --- | --- |${" --- |".repeat(checks.length)}`,
    ...Array.from(rows, ([key, cells]) => `| ${key} | ${cells.join(" | ")} |`),
  ].join("\n");
}
