import type { DoorName } from "../doors.ts";

/** Lines that may differ between the API server and Sluice, and why. */
export interface KnownDifference {
  readonly doors: readonly DoorName[];
  /** The title of the case; absent: every case. */
  readonly of?: RegExp;
  /** Each differing line, with `- ` where only the API server has it and `+ ` where only Sluice has it. */
  readonly line: RegExp;
  readonly reason: string;
}

const GATEWAYS: readonly DoorName[] = ["gateway", "spdy", "caller", "both"];

export const knownDifferences: readonly KnownDifference[] = [
  {
    doors: GATEWAYS,
    line: /^- audit-id: <any>$/,
    reason: "Sluice's own responses have no Audit-Id: its audit events carry the session's id instead",
  },
];

/** The lines that no entry explains. */
export function unexplained(door: DoorName, title: string, lines: readonly string[]): string[] {
  const entries = knownDifferences.filter(
    ({ doors, of }) => doors.includes(door) && (of?.test(title) ?? true),
  );
  return lines.filter((line) => !entries.some((entry) => entry.line.test(line)));
}
