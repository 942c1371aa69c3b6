import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, inject, it } from "vitest";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import { readObject } from "../../../src/api/validation/read-object.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";
import { describeReal } from "../../support/real-parts.ts";
import { answeredTexts, ourTexts, type ValidationAnswer } from "../../support/validation-texts.ts";
import { exchange } from "../differential/raw-exchange.ts";
import { TOKENS } from "../kubernetes/credentials.ts";
import type { ClusterAddresses } from "../kubernetes/start-cluster.ts";
import { type GeneratedObject, generatedObjects } from "./generated-objects.ts";
import { type KnownDifference, knownDifferences } from "./known-differences.ts";

const document = path.resolve(import.meta.dirname, "../../../docs/evidence/validation.md");

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
    const access = { url: cluster.url, ca, kubeconfig: "", token: TOKENS.admin.token };
    const objects = generatedObjects();
    const rows = new Map<string, Row>();
    const unexplained: object[] = [];
    for (const generated of objects) {
      const { kind, object, edits } = generated;
      const answer = await exchange(access, dryRunOf(generated));
      const status: ValidationAnswer =
        answer.status === 201 ? { code: 201 } : { ...JSON.parse(answer.body), code: answer.status };
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
    expect(unexplained).toEqual([]);
    expect(objects.length).toBeGreaterThan(700);
    expect([...rows.keys()]).toHaveLength(21);
    if (process.env.SLUICE_WRITE_DOCS === "1")
      writeFileSync(document, documentOf(cluster.version, objects.length, rows));
  });
});

/** None of the cluster's own objects are there: those of the same name would be refused for it. */
const NAMESPACE = "kube-public";

function dryRunOf({ kind, object }: GeneratedObject) {
  const { apiVersion = "", resource = "", isNamespaced = false } = strategyOf(kind) ?? {};
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const collection = `${group}${isNamespaced ? `/namespaces/${NAMESPACE}` : ""}/${resource}`;
  return {
    method: "POST",
    path: `${collection}?dryRun=All&fieldValidation=Strict`,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(object),
  };
}

/** Go walks maps in no order: sentences about one field count in any. */
function differingLines(theirs: readonly string[], ours: readonly string[]): string[] {
  const left = theirs.filter((text) => !ours.includes(text)).map((text) => `- ${text}`);
  const right = ours.filter((text) => !theirs.includes(text)).map((text) => `+ ${text}`);
  if (left.length + right.length > 0) return [...left, ...right];
  const fieldsOf = (texts: readonly string[]): string =>
    texts.map((text) => / is invalid: ([^:]*): /.exec(text)?.[1] ?? text).join("\n");
  return fieldsOf(theirs) === fieldsOf(ours) ? [] : [`another order: ${theirs.join(" | ")}`];
}

function documentOf(version: string, total: number, rows: ReadonlyMap<string, Row>): string {
  const sum = (of: (row: Row) => number): number => [...rows.values()].reduce((all, row) => all + of(row), 0);
  const line = (kind: string, { objects, valid, equal, known }: Row): string =>
    `| ${kind} | ${objects} | ${valid} | ${equal} | ${known.length} | 0 |`;
  const reasons = knownDifferences.map(({ kinds, reason }) => `- ${kinds.join(", ")}: ${reason}`);
  return `# Validation: check-config and a real API server

Written by \`SLUICE_WRITE_DOCS=1 npm run test:cluster -- test/cluster/validation\`; not edited by hand. ${total} objects (seed 1), each a good one with one to three
edits, were posted to Kubernetes ${version} as dry runs with strict field validation, and read as \`sluice check-config\` reads a manifest. Verdicts and
sentences are compared; of sentences about one field the order is free, since Go walks maps in none.

| kind | objects | valid | equal | known differences | unexplained |
|---|---|---|---|---|---|
${[...rows].map(([kind, row]) => line(kind, row)).join("\n")}
| all | ${total} | ${sum(({ valid }) => valid)} | ${sum(({ equal }) => equal)} | ${sum(({ known }) => known.length)} | 0 |

Known differences:

${reasons.join("\n")}
`;
}
