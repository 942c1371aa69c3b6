import { readFileSync } from "node:fs";
import path from "node:path";

export interface ThreatTest {
  /** The path from the repository's root. */
  readonly file: string;
  /**
   * A part of one or more tests' full names, including those of their `describe`; empty: all tests
   * of the file.
   */
  readonly title: string;
}

export interface Threat {
  /** `T7`. */
  readonly name: string;
  readonly tests: readonly ThreatTest[];
  /** The row of the table. */
  readonly text: string;
}

/** The rows of docs/threats.md. */
export function readThreats(): readonly Threat[] {
  const file = path.resolve(import.meta.dirname, "../../docs/threats.md");
  const rows = readFileSync(file, "utf8").split("\n");
  return rows.filter((line) => /^\| T\d+ /.test(line)).map(threatOf);
}

function threatOf(row: string): Threat {
  const cell = row.split(" | ").at(-1) ?? "";
  const named = [...cell.matchAll(/`(test\/[^`]+)`(?:: ([^;|]+))?/g)];
  return {
    name: row.slice(2).split(" ")[0] ?? "",
    tests: named.map(([, file = "", title = ""]) => ({ file, title: title.trim() })),
    text: row,
  };
}
