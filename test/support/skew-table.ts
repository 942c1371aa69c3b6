import { evidenceTable } from "./evidence-table.ts";

/** The result of one check of one kubectl in one combination. */
export interface SkewResult {
  readonly combination: string;
  readonly kubectl: string;
  readonly check: string;
  hasPassed: boolean;
  journey: string;
}

/**
 * A markdown table: a row for each combination, a column for each kubectl, and in each cell the
 * paths of all checks, equal ones once.
 */
export function skewTable(results: readonly SkewResult[]): string {
  const kubectls = [...new Set(results.map(({ kubectl }) => kubectl))];
  const combinations = [...new Set(results.map(({ combination }) => combination))];
  const columns = kubectls.map((kubectl) => ({
    kubectls: [kubectl],
    cells: combinations.map((combination) =>
      cellOf(results.filter((result) => result.combination === combination && result.kubectl === kubectl)),
    ),
  }));
  const different = columns.filter((column, index) => {
    const equal = columns.slice(0, index).find(({ cells }) => cells.join("\n") === column.cells.join("\n"));
    equal?.kubectls.push(...column.kubectls);
    return equal === undefined;
  });
  const rows = combinations.map((combination, index) => [
    ...combination.split(" | "),
    ...different.map(({ cells }) => cells[index] ?? ""),
  ]);
  const names = different.map((column) => `kubectl ${column.kubectls.join(", ")}`);
  return evidenceTable(["API server", "node", ...names], rows, [1, 0]);
}

/** Checks with equal paths form one entry: `WebSocket translate (exec, attach, cp)`. */
function cellOf(results: readonly SkewResult[]): string {
  const groups = new Map<string, string[]>();
  for (const { check, hasPassed, journey } of results) {
    const outcome = `${hasPassed ? "" : "**FAIL**: "}${journey}`;
    groups.set(outcome, [...(groups.get(outcome) ?? []), check]);
  }
  if (groups.size === 0) return "not run";
  const [only] = groups.keys();
  if (groups.size === 1 && only !== undefined) return only;
  return Array.from(groups, ([outcome, checks]) => `${outcome} (${checks.join(", ")})`).join("<br>");
}
