import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { importImages } from "../../real/containerd/start-containerd.ts";
import { replaceSection } from "../../support/evidence-sections.ts";
import { evidenceTable } from "../../support/evidence-table.ts";
import { describeReal, newestContainerd } from "../../support/real-parts.ts";
import { findE2ePrograms } from "../../support/real-parts-finder.ts";
import { type DoorName, type Doors, openDoors } from "../doors.ts";
import { certificateOf, kubeconfigText } from "../kubernetes/credentials.ts";
import type { ClusterAddresses } from "../kubernetes/start-cluster.ts";
import { e2eImagesArchive } from "./e2e-images.ts";
import { runE2e, type Spec } from "./run-e2e.ts";

const isFull = process.env.SLUICE_FULL === "1";
const ALL_DOORS: readonly DoorName[] = ["straight", "gateway", "node", "both"];
/** Ordinary runs go straight, and through the gateway with Sluice as the node: each way costs a minute or two. */
const DOORS: readonly DoorName[] = isFull ? ALL_DOORS : ["straight", "both"];
/** One of each kind, two minutes of the twelve that all take: exec, attach, exit codes, cp, both ways to forward a port, logs, ephemeral containers. */
const QUICK_FOCUS = [
  "Simple pod should support exec using resource/name",
  "Simple pod should support inline execution and attach with websockets",
  "execing into a container with a failing command",
  "Kubectl copy",
  "0.0.0.0 that expects a client request should support a client that connects, sends DATA",
  "0.0.0.0 should support forwarding over websockets",
  "with a pod being removed",
  "logs should be able to retrieve",
  "over websockets \\[Conformance",
  "Ephemeral Containers will start",
];
/** Everything of Kubernetes' own that streams, whichever part of kubectl or client-go it comes by. */
const FOCUS = [
  "Kubectl client Simple pod",
  "Kubectl client Kubectl (copy|run pod|cluster-info dump)",
  "Kubectl Port forwarding",
  "Kubectl logs",
  "Kubectl exec",
  "over websockets",
  "Ephemeral Containers",
];
const SKIP = ["Feature:", "\\[Disruptive\\]", "Windows"];
const SLOW = ["\\[Slow\\]", "1000 times"];
const SLOW_FOCUS = [
  "Kubectl client Simple pod.*\\[Slow\\]",
  "Kubectl exec should be able to execute 1000 times",
];

interface E2eSection {
  readonly title: string;
  readonly focus: readonly string[];
  readonly skip: readonly string[];
  /** So many pass straight at least. */
  readonly fewest: number;
  /** SLUICE_FULL=1 runs the whole sections, other runs the one that is a choice of the quick ones. */
  readonly isWhole: boolean;
}
const SKIP_QUICK = [...SKIP, ...SLOW];
const sections: readonly E2eSection[] = [
  { title: "A choice of the quick ones", focus: QUICK_FOCUS, skip: SKIP_QUICK, fewest: 10, isWhole: false },
  { title: "The quick ones", focus: FOCUS, skip: SKIP_QUICK, fewest: 25, isWhole: true },
  // Such as 1,000 sessions: for a run that asks for it.
  { title: "The slow ones", focus: SLOW_FOCUS, skip: SKIP, fewest: 5, isWhole: true },
];

describeReal("cluster", "Kubernetes' own tests", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  const programs = findE2ePrograms();
  let opened: Doors | undefined;
  beforeAll(async () => {
    const containerd = newestContainerd();
    if (programs === undefined || containerd === undefined) return;
    await importImages(containerd, cluster.runtimeSocket, await e2eImagesArchive(programs));
    opened = await openDoors(cluster, ALL_DOORS);
  });
  afterAll(async () => {
    await opened?.stop();
  });

  const run = async (name: DoorName, { focus, skip }: E2eSection): Promise<readonly Spec[]> => {
    const door = opened?.doors.find((candidate) => candidate.name === name);
    if (door === undefined || programs === undefined) throw new Error(`no way ${name}`);
    const { url } = await door.access("admin");
    const folder = path.join(cluster.folder, "e2e");
    mkdirSync(folder, { recursive: true });
    const kubeconfig = path.join(folder, `${name}.kubeconfig`);
    // A certificate, as administrators have: the client that is not kubectl sends an Origin with it.
    const user = certificateOf("admin", cluster.credentials);
    writeFileSync(kubeconfig, kubeconfigText(url, cluster.credentials, user), { mode: 0o600 });
    const kubectl = path.join(cluster.programs, "kubectl");
    return await runE2e({ program: programs.e2e, kubectl, kubeconfig, folder, focus, skip });
  };
  const passedOf = (specs: readonly Spec[] = []): string[] =>
    specs.filter(({ state }) => state === "passed").map(({ name }) => name);

  for (const section of sections) {
    const reason = section.isWhole === isFull ? "" : isFull ? " (in the whole section)" : " (SLUICE_FULL=1)";
    it.skipIf(programs === undefined || reason !== "")(
      `${section.title} that pass straight pass through Sluice: ${DOORS.slice(1).join(", ")}${reason}`,
      async () => {
        const results = new Map(
          await Promise.all(DOORS.map(async (name) => [name, await run(name, section)] as const)),
        );
        if (process.env.SLUICE_WRITE_DOCS === "1") writeTable(cluster, section, results);
        const expected = passedOf(results.get("straight"));
        expect(expected.length).toBeGreaterThanOrEqual(section.fewest);
        for (const name of DOORS) {
          const specs = results.get(name) ?? [];
          const passed = new Set(passedOf(specs));
          const missing = specs.filter((spec) => expected.includes(spec.name) && !passed.has(spec.name));
          expect.soft({ [name]: missing }).toEqual({ [name]: [] });
          expect
            .soft(specs.map((spec) => spec.name))
            .toEqual(results.get("straight")?.map((spec) => spec.name));
        }
      },
      section.isWhole ? 90 * 60_000 : 30 * 60_000,
    );
  }
});

function shortName(name: string): string {
  return name.replace(/^\[sig-\w+\] (?:Kubectl (?:client )?)?/, "").replaceAll(/ \[[^\]]+\]/g, "");
}

function writeTable(
  cluster: ClusterAddresses,
  { title, focus, skip }: E2eSection,
  results: ReadonlyMap<DoorName, readonly Spec[]>,
): void {
  const failed = DOORS.flatMap((door) =>
    (results.get(door) ?? [])
      .filter(({ state }) => state !== "passed")
      .map(({ name, state }) => `\n- ${door}, ${state}: ${shortName(name)}`),
  ).join("");
  const totals = DOORS.map((door) => {
    const specs = results.get(door) ?? [];
    return `${specs.filter(({ state }) => state === "passed").length} of ${specs.length}`;
  });
  const head = `# Kubernetes' own tests

Every streaming test of \`k8s.io/kubernetes/test/e2e\` ${cluster.version} that passes straight at the API server passes
through the gateway, with Sluice as the node, and with both: exec, attach, cp, port-forward, logs,
exit codes, ephemeral containers. The user is an administrator with a client certificate. Written by
\`SLUICE_FULL=1 SLUICE_WRITE_DOCS=1 npm run test:cluster -- test/cluster/e2e\`; without \`SLUICE_FULL\` eleven
quick ones run, straight and with both.
`;
  const listed = (expressions: readonly string[]): string =>
    expressions.map((text) => `\`${text}\``).join(", ");
  const text = `${evidenceTable(["", ...DOORS], [["passed", ...totals]])}

Tests whose names match ${listed(focus)}, without ${listed(skip)}.${failed}`;
  replaceSection(
    path.resolve(import.meta.dirname, "../../../docs/evidence/cluster-e2e.md"),
    title,
    text,
    head,
  );
}
