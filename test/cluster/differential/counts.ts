import path from "node:path";
import { readSections, replaceSection } from "../../support/evidence-sections.ts";
import { evidenceTable } from "../../support/evidence-table.ts";
import type { DoorName } from "../doors.ts";
import type { KnownDifference } from "./known-differences.ts";

const document = path.resolve(import.meta.dirname, "../../../docs/evidence/differential.md");

const HEAD = `# The same request straight and through Sluice

Every case runs straight at a real API server and through each door at once. Exit codes, output, status,
headers and bodies are equal, or differ as the last table allows. Times, ids and resource versions are
not compared.

| door | what it is |
|---|---|
| gateway | Sluice in front of the API server |
| spdy | the same with \`kubelet.streaming.mode: spdy\` |
| caller | the same with \`cluster.forwardAs: caller\` |
| agent | \`sluice agent\` |
| node | an API server whose node is Sluice |
| both | the gateway in front of such an API server |

A cell counts the equal cases, \`+\` those with an allowed difference. The newest kubectl runs every command,
older ones those that stream. Written by
\`SLUICE_FULL=1 SLUICE_WRITE_DOCS=1 npm run test:cluster -- test/cluster/differential\`, with
\`SLUICE_API_SERVER=oldest\` for the older API server.
`;

const DIFFERENCES = "Allowed differences";

/** What one case came to through one door. */
export interface Comparison {
  readonly door: DoorName;
  /** The entries of known-differences.ts that explain a difference. */
  readonly allowed: readonly KnownDifference[];
  /** Lines that no entry explains. */
  readonly unexplained: readonly string[];
}

/** The cases of each client, for docs/evidence/differential.md. */
export class DifferentialCounts {
  readonly #cases = new Map<string, (readonly Comparison[])[]>();

  add(client: string, comparisons: readonly Comparison[]): void {
    this.#cases.set(client, [...(this.#cases.get(client) ?? []), comparisons]);
  }

  get total(): number {
    return [...this.#cases.values()].reduce((sum, { length }) => sum + length, 0);
  }

  /** In place of the section of this API server, and of its column among the differences. */
  publish(apiServer: string): void {
    replaceSection(document, `API server ${apiServer}`, this.#section(), HEAD);
    const reasons = reasonsOf([...this.#cases.values()].flat(), this.#doors);
    const earlier = readSections(document).sections.find((section) =>
      section.startsWith(`## ${DIFFERENCES}\n`),
    );
    replaceSection(document, DIFFERENCES, differencesTable(earlier ?? "", apiServer, reasons));
  }

  get #doors(): readonly DoorName[] {
    return [...this.#cases.values()][0]?.[0]?.map(({ door }) => door) ?? [];
  }

  #section(): string {
    const doors = this.#doors;
    const row = (client: string, cases: readonly (readonly Comparison[])[]): string[] => {
      const cells = doors.map((name) => cellOf(comparisonsOf(cases, name)));
      return [client, String(cases.length), ...cells];
    };
    const whole = [...this.#cases.values()].flat();
    const rows = Array.from(this.#cases, ([client, cases]) => row(client, cases));
    return evidenceTable(["client", "cases", ...doors], [...rows, row("all", whole)], [0]);
  }
}

function comparisonsOf(cases: readonly (readonly Comparison[])[], name: DoorName): Comparison[] {
  return cases.flatMap((comparisons) => comparisons.filter(({ door }) => door === name));
}

function cellOf(comparisons: readonly Comparison[]): string {
  const differing = comparisons.filter(({ unexplained }) => unexplained.length > 0).length;
  const allowed = comparisons.filter((one) => one.allowed.length > 0 && one.unexplained.length === 0).length;
  const equal = comparisons.length - allowed - differing;
  return `${equal}${allowed > 0 ? `+${allowed}` : ""}${differing > 0 ? `, **${differing} differ**` : ""}`;
}

/** The table with the column of this API server, and those of others as they were. */
function differencesTable(
  earlier: string,
  apiServer: string,
  reasons: readonly (readonly [reason: string, cell: string])[],
): string {
  const [head = [], , ...rows] = earlier
    .split("\n")
    .filter((line) => line.startsWith("| ") || line.startsWith("|-"))
    .map((line) => line.slice(2, -2).split(" | "));
  const others = head.slice(1).filter((name) => name !== apiServer);
  const cells = new Map(rows.map(([reason = "", ...row]) => [reason, row]));
  const cellOfOther = (reason: string, other: string): string =>
    cells.get(reason)?.[head.indexOf(other) - 1]?.trim() ?? "";
  const own = new Map(reasons);
  const all = [...new Set([...own.keys(), ...cells.keys()])].map((reason) => [
    reason,
    own.get(reason) ?? "",
    ...others.map((other) => cellOfOther(reason, other)),
  ]);
  const used = all.filter((row) => row.slice(1).some((cell) => cell !== ""));
  return evidenceTable(["allowed difference, cases by door", apiServer, ...others], used);
}

/** Most cases first. */
function reasonsOf(
  cases: readonly (readonly Comparison[])[],
  doors: readonly DoorName[],
): (readonly [reason: string, cell: string])[] {
  const entries = new Set(cases.flatMap((comparisons) => comparisons.flatMap(({ allowed }) => allowed)));
  const rows = Array.from(entries, (entry) => {
    const counts = doors.map((door) => {
      const count = comparisonsOf(cases, door).filter(({ allowed }) => allowed.includes(entry)).length;
      return { door, count };
    });
    const used = counts.filter(({ count }) => count > 0);
    const cells = Array.from(new Set(used.map(({ count }) => count)), (shared) => {
      const equal = used.filter(({ count }) => count === shared);
      return `${equal.map(({ door }) => door).join(", ")} ${shared}`;
    }).join("; ");
    return {
      sum: used.reduce((sum, { count }) => sum + count, 0),
      row: [entry.reason.replaceAll("|", "\\|"), cells] as const,
    };
  });
  return rows.sort((a, b) => b.sum - a.sum).map(({ row }) => row);
}
