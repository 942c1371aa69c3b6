import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, inject, it } from "vitest";
import { readObject } from "../../../src/api/strategy/read-object.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";
import { publishSection } from "../../support/evidence-sections.ts";
import { describeReal } from "../../support/real-parts.ts";
import { answeredTexts, ourTexts } from "../../support/validation-texts.ts";
import { TOKENS } from "../kubernetes/credentials.ts";
import type { ClusterAddresses } from "../kubernetes/start-cluster.ts";
import { DryRuns } from "./dry-run.ts";
import { generatedObjects } from "./generated-objects.ts";
import { type KnownDifference, knownDifferences } from "./known-differences.ts";

interface Row {
  objects: number;
  valid: number;
  equal: number;
  readonly known: KnownDifference[];
}

describeReal("cluster", "check-config's texts and the API server's", () => {
  const cluster = inject("cluster") as ClusterAddresses;

  it("are the same for generated objects of every kind that is validated", async () => {
    const ca = readFileSync(path.join(cluster.credentials, "ca.crt"), "utf8");
    const dryRuns = new DryRuns({ url: cluster.url, ca, token: TOKENS.admin.token });
    const objects = generatedObjects();
    const rows = new Map<string, Row>();
    const unexplained: object[] = [];
    for (const generated of objects) {
      const { kind, object, edits } = generated;
      const status = await dryRuns.post(kind, object);
      const [theirs, ours] = [
        answeredTexts(status),
        ourTexts(readObject(object, FeatureGates.defaults, "Strict")),
      ];
      const row = rows.get(kind) ?? { objects: 0, valid: 0, equal: 0, known: [] };
      rows.set(kind, row);
      row.objects += 1;
      if (theirs.length === 0) row.valid += 1;
      const lines = differingLines(theirs, ours);
      if (lines.length === 0) row.equal += 1;
      const entries = lines.map((line) =>
        knownDifferences.find((known) => known.kinds.includes(kind) && known.line.test(line)),
      );
      if (entries.includes(undefined)) unexplained.push({ kind, edits, lines });
      else row.known.push(...new Set(entries as KnownDifference[]));
    }
    dryRuns.close();
    expect(unexplained).toEqual([]);
    expect(objects.length).toBeGreaterThan(700);
    expect([...rows.keys()]).toHaveLength(21);
    publishSection(
      "validation.md",
      "Edits that rules are about",
      sectionOf(cluster.version, objects.length, rows),
    );
  });
});

/** Go walks maps in no order: sentences about one field count in any. */
function differingLines(theirs: readonly string[], ours: readonly string[]): string[] {
  const left = theirs.filter((text) => !ours.includes(text)).map((text) => `- ${text}`);
  const right = ours.filter((text) => !theirs.includes(text)).map((text) => `+ ${text}`);
  if (left.length + right.length > 0) return [...left, ...right];
  const fieldsOf = (texts: readonly string[]): string =>
    texts.map((text) => / is invalid: ([^:]*): /.exec(text)?.[1] ?? text).join("\n");
  return fieldsOf(theirs) === fieldsOf(ours) ? [] : [`another order: ${theirs.join(" | ")}`];
}

function sectionOf(version: string, total: number, rows: ReadonlyMap<string, Row>): string {
  const sum = (of: (row: Row) => number): number => [...rows.values()].reduce((all, row) => all + of(row), 0);
  const reasons = knownDifferences.map(({ kinds, reason }) => `- ${kinds.join(", ")}: ${reason}`);
  return `${total} objects of ${rows.size} kinds (seed 1), each a valid one with one to three edits that rules are about,
posted to Kubernetes ${version}: ${sum(({ valid }) => valid)} are valid, ${sum(({ equal }) => equal)} get equal sentences (those about one field
in any order), ${sum(({ known }) => known.length)} differ as known:

${reasons.join("\n")}
`;
}
