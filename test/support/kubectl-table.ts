import { evidenceTable } from "./evidence-table.ts";

/** The result of one check of one kubectl against one node. */
export interface CheckResult {
  kubectl: string;
  node: string;
  check: string;
  hasPassed: boolean;
  /** Such as `WebSocket translate`. */
  path: string;
}

/** The session's path in one word. */
const WAYS: Readonly<Record<string, string>> = {
  "SPDY pass-through": "SPDY",
  "WebSocket pass-through": "WebSocket",
  "WebSocket translate": "translate",
  "WebSocket tunnel": "tunnel",
};

/**
 * A markdown table with a column for each check and the path in each cell. kubectls and nodes with
 * equal paths share a row.
 */
export function kubectlTable(results: readonly CheckResult[], checks: readonly string[]): string {
  const rows = new Map<string, string[]>();
  for (const result of results) {
    const key = `${result.kubectl} ${result.node}`;
    const row = rows.get(key) ?? [result.kubectl, result.node, ...checks.map(() => "not run")];
    row[2 + checks.indexOf(result.check)] =
      `${result.hasPassed ? "" : "**FAIL** "}${WAYS[result.path] ?? result.path}`;
    rows.set(key, row);
  }
  return evidenceTable(["kubectl", "node", ...checks], [...rows.values()], [1, 0]);
}
