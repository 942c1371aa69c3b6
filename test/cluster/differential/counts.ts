import path from "node:path";
import { replaceSection } from "../../support/evidence-sections.ts";
import { evidenceTable } from "../../support/evidence-table.ts";
import type { DoorName } from "../doors.ts";
import type { KnownDifference } from "./known-differences.ts";

const document = path.resolve(import.meta.dirname, "../../../docs/evidence/differential.md");

const HEAD = `# The same request straight and through Sluice

Every case runs straight at a real API server and through each door at once. Exit codes, output, status,
headers and bodies are equal, or differ as the list below each table allows. Times, ids and resource
versions are not compared.

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

  /** In place of the section of this API server. */
  publish(apiServer: string): void {
    replaceSection(document, `API server ${apiServer}`, this.#section(), HEAD);
  }

  #section(): string {
    const doors = [...this.#cases.values()][0]?.[0]?.map(({ door }) => door) ?? [];
    const row = (client: string, cases: readonly (readonly Comparison[])[]): string[] => {
      const cells = doors.map((name) => cellOf(comparisonsOf(cases, name)));
      return [client, String(cases.length), ...cells];
    };
    const whole = [...this.#cases.values()].flat();
    const rows = Array.from(this.#cases, ([client, cases]) => row(client, cases));
    return `${evidenceTable(["client", "cases", ...doors], [...rows, row("all", whole)], [0])}

| allowed difference | cases by door |
|---|---|
${reasonsOf(whole, doors).join("\n")}`;
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

/** Most cases first. */
function reasonsOf(cases: readonly (readonly Comparison[])[], doors: readonly DoorName[]): string[] {
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
      line: `| ${entry.reason.replaceAll("|", "\\|")} | ${cells} |`,
    };
  });
  return rows.sort((a, b) => b.sum - a.sum).map(({ line }) => line);
}
