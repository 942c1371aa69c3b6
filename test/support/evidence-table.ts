type Row = readonly string[];

/**
 * A markdown table for docs/evidence. For each column of `merged` in turn, rows that differ only in
 * it become one row, whose cell lists their values.
 */
export function evidenceTable(head: Row, rows: readonly Row[], merged: readonly number[] = []): string {
  const all = merged.reduce<readonly Row[]>(mergeColumn, rows);
  const line = (row: Row): string => `| ${row.join(" | ")} |`;
  return [line(head), `${"|---".repeat(head.length)}|`, ...all.map(line)].join("\n");
}

function mergeColumn(rows: readonly Row[], column: number): readonly Row[] {
  const groups = new Map<string, { readonly row: Row; readonly cells: string[] }>();
  for (const row of rows) {
    const key = row.toSpliced(column, 1).join("\n");
    const group = groups.get(key) ?? { row, cells: [] };
    groups.set(key, group);
    group.cells.push(row[column] ?? "");
  }
  return Array.from(groups.values(), ({ row, cells }) => row.with(column, cells.join(", ")));
}
