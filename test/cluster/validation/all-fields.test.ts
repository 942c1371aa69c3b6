import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, inject, it } from "vitest";
import { readObject } from "../../../src/api/strategy/read-object.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";
import { publishSection } from "../../support/evidence-sections.ts";
import { describeReal } from "../../support/real-parts.ts";
import { answeredTexts, ourTexts, type ValidationAnswer } from "../../support/validation-texts.ts";
import { TOKENS } from "../kubernetes/credentials.ts";
import type { ClusterAddresses } from "../kubernetes/start-cluster.ts";
import { DryRuns } from "./dry-run.ts";
import { type FieldMutation, fieldMutations, type MutationClass } from "./field-mutations.ts";
import { knownDifferences } from "./known-differences.ts";

type Verdict = "agreed" | "not judged" | "known difference" | "disagreed";
type Counts = Record<MutationClass, Record<Verdict, number>>;

const CLASSES: readonly MutationClass[] = ["wrong type", "unknown name", "own type"];

describeReal("cluster", "check-config's texts and the API server's, for every field", () => {
  const cluster = inject("cluster") as ClusterAddresses;

  it("are the same for wrong types and unknown names at every depth", { timeout: 600_000 }, async () => {
    const ca = readFileSync(path.join(cluster.credentials, "ca.crt"), "utf8");
    const dryRuns = new DryRuns({ url: cluster.url, ca, token: TOKENS.admin.token });
    const rows = new Map<string, Counts>();
    const disagreed: object[] = [];
    const all = fieldMutations();
    const judge = async (mutation: FieldMutation): Promise<void> => {
      const { kind, object, of } = mutation;
      const theirs = await dryRuns.post(kind, object);
      const ours = ourTexts(readObject(object, FeatureGates.defaults, "Strict"));
      const verdict = verdictOf(mutation, theirs, ours);
      const row = rows.get(kind) ?? emptyCounts();
      rows.set(kind, row);
      row[of][verdict] += 1;
      if (verdict === "disagreed")
        disagreed.push({ kind, of, path: mutation.path.join("."), theirs: answeredTexts(theirs), ours });
    };
    const worker = async (): Promise<void> => {
      for (const mutation of all) await judge(mutation);
    };
    // They share one generator: each takes the next mutation when its last one is answered.
    await Promise.all(Array.from({ length: 8 }, worker)).finally(() => dryRuns.close());

    expect(disagreed).toEqual([]);
    expect(sum(rows, "wrong type", "not judged") + sum(rows, "unknown name", "not judged")).toBe(0);
    expect(sum(rows, "wrong type", "agreed")).toBeGreaterThan(5_000);
    expect(sum(rows, "unknown name", "agreed")).toBeGreaterThan(1_000);
    publishSection("validation.md", "Every field", sectionOf(cluster.version, rows));
  });
});

/** Not judged: the API server refuses by a rule that Sluice does not have. */
function verdictOf({ kind, of }: FieldMutation, answer: ValidationAnswer, ours: readonly string[]): Verdict {
  const theirs = answeredTexts(answer);
  const missing = theirs.filter((text) => !ours.includes(text)).map((text) => `- ${text}`);
  const extra = ours.filter((text) => !theirs.includes(text)).map((text) => `+ ${text}`);
  if (missing.length + extra.length === 0) return "agreed";
  const isKnown = (line: string): boolean =>
    knownDifferences.some((known) => known.kinds.includes(kind) && known.line.test(line));
  if ([...missing, ...extra].every(isKnown)) return "known difference";
  const isDecoded = answer.code !== 400 && !ours.some((text) => text.includes(" cannot be handled as a "));
  return of === "own type" && isDecoded && extra.every(isKnown) ? "not judged" : "disagreed";
}

function emptyCounts(): Counts {
  const none = (): Record<Verdict, number> => ({
    agreed: 0,
    "not judged": 0,
    "known difference": 0,
    disagreed: 0,
  });
  return { "wrong type": none(), "unknown name": none(), "own type": none() };
}

function sum(rows: ReadonlyMap<string, Counts>, of: MutationClass, verdict: Verdict): number {
  return [...rows.values()].reduce((all, row) => all + row[of][verdict], 0);
}

const MEANING: Readonly<Record<MutationClass, string>> = {
  "wrong type": "a value of another JSON type",
  "unknown name": "a field that the type does not have",
  "own type": "another value of the field's type, such as `x-1`, 1, true",
};

function sectionOf(version: string, rows: ReadonlyMap<string, Counts>): string {
  const tried = (row: Counts, of: MutationClass): number =>
    Object.values(row[of]).reduce((all, count) => all + count, 0);
  const total = emptyCounts();
  for (const row of rows.values())
    for (const of of CLASSES)
      for (const [verdict, count] of Object.entries(row[of])) total[of][verdict as Verdict] += count;
  const line = (of: MutationClass): string => {
    const { agreed, "not judged": notJudged, "known difference": known } = total[of];
    return `| ${[MEANING[of], tried(total, of), agreed, notJudged, known].join(" | ")} |`;
  };
  const count = CLASSES.reduce((all, of) => all + tried(total, of), 0);
  return `${count} objects of ${rows.size} kinds against Kubernetes ${version}: valid ones with one field changed, for every field of every
kind at every depth (in a Pod at every place, elsewhere once for each type). All sentences about wrong
types and unknown names are equal. Sluice alone refuses none, apart from the known differences above.

| a valid object with | objects | equal sentences | not judged | known differences |
|---|---|---|---|---|
${CLASSES.map(line).join("\n")}

Not judged: the API server refuses by a rule or admission that \`check-config\` lacks; its report names the field.
`;
}
