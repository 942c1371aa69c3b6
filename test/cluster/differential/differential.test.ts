import path from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { KubectlRunner } from "../../support/kubectl.ts";
import {
  describeReal,
  isFullRun,
  kubectlSample,
  kubectls,
  oldestAndNewest,
} from "../../support/real-parts.ts";
import { findClusterPrograms, type Kubectl } from "../../support/real-parts-finder.ts";
import { type Door, type DoorName, type Doors, openDoors, type User } from "../doors.ts";
import { applyObjects, type ClusterAddresses } from "../kubernetes/start-cluster.ts";
import { type Comparison, DifferentialCounts } from "./counts.ts";
import {
  generatedOptionCases,
  generatedPathCases,
  generatedRbacCases,
  generatedRoles,
} from "./generated-cases.ts";
import { type HttpCase, httpCases } from "./http-cases.ts";
import { explain } from "./known-differences.ts";
import { type KubectlCase, kubectlCases } from "./kubectl-cases.ts";
import { differencesOf, httpOutcome, type Known, type Outcome, pruned } from "./outcome.ts";
import { exchange } from "./raw-exchange.ts";
import { upgradeCases } from "./upgrade-cases.ts";

const DOORS: readonly DoorName[] = ["straight", "gateway", "spdy", "caller", "agent", "node", "both"];
/** They differ from `straight` or `gateway` only in what reaches a node: ordinary runs try the rest at the others. */
const NODE_DOORS: readonly DoorName[] = ["spdy", "node", "both"];
/** Older kubectls differ from the newest in what they send to nodes: ordinary runs compare them at these. */
const OLDER_DOORS: readonly DoorName[] = ["straight", "gateway", "both"];
const LEFT_OUT = " (SLUICE_FULL=1)";
const REACHES_NODES = /\b(?:exec|attach|cp|logs?|port-?forward|proxy|top|debug)\b/;

describeReal("cluster", "the same request straight and through Sluice", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  const runners = new Map<string, KubectlRunner>();
  const counts = new DifferentialCounts();
  let opened: Doors | undefined;
  beforeAll(async () => {
    opened = await openDoors(cluster, DOORS);
  });
  afterAll(async () => {
    for (const runner of runners.values()) runner.remove();
    await opened?.stop();
    // A part of the cases must not replace the page.
    if (process.env.SLUICE_WRITE_DOCS === "1" && counts.total === planned) counts.publish(cluster.version);
  });

  const newest: Kubectl = {
    version: findClusterPrograms()?.versions[0] ?? "",
    path: path.join(cluster.programs, "kubectl"),
    minor: 37,
  };
  const runnerOf = async (door: Door, user: User, kubectl: Kubectl): Promise<KubectlRunner> => {
    const key = `${door.name} ${user} ${kubectl.version}`;
    const runner = runners.get(key) ?? new KubectlRunner(kubectl, await door.access(user));
    runners.set(key, runner);
    return runner;
  };

  /** Runs a case on every way at once and holds each outcome against the one straight at the API server. */
  const compare = async (
    title: string,
    user: User,
    run: (door: Door, known: Known) => Promise<Outcome>,
    names: readonly DoorName[] = doorsOf(title),
  ): Promise<readonly Comparison[]> => {
    const doors = (opened?.doors ?? []).filter(({ name }) => names.includes(name));
    const outcomes = await Promise.all(
      doors.map(async (door) => {
        const { url } = await door.access(user);
        // What the API server says of itself is forwarded as it is.
        const servers = [url, cluster.url, cluster.throughSluiceUrl].flatMap((server) => [
          [server, "$SERVER"],
          [new URL(server).host, "$HOST"],
        ]);
        return run(door, { ...Object.fromEntries(servers), [nameOf(door)]: "$NAME" });
      }),
    );
    return doors.flatMap((door, index) => {
      if (door.name === "straight") return [];
      const lines = differencesOf(outcomes[0] ?? [], outcomes[index] ?? []);
      return [{ door: door.name, ...explain({ door: door.name, title, apiServer: cluster.version }, lines) }];
    });
  };
  /** The cluster goes on living meanwhile: pods restart, caches catch up. What differs three times differs. */
  const expectSame = async (client: string, ...args: Parameters<typeof compare>): Promise<void> => {
    let compared = await compare(...args);
    const differing = () => compared.filter(({ unexplained }) => unexplained.length > 0);
    for (let again = 0; again < 2 && differing().length > 0; again++) compared = await compare(...args);
    counts.add(client, compared);
    const found = Object.fromEntries(differing().map(({ door, unexplained }) => [door, unexplained]));
    // A summary cuts objects, not messages.
    expect.soft(found, `${args[0]}: ${JSON.stringify(found)}`).toEqual({});
  };

  // Other releases stream in other ways; what they read is the same.
  const isStreaming = ({ commands }: KubectlCase): boolean =>
    /^(?:exec|attach|cp|logs|port-forward) /.test(commands);
  const streaming = kubectlCases.filter(isStreaming);
  // Ordinary runs try all commands, and the oldest kubectl, at the newest API server; the oldest meets what streams, and raw requests.
  const isOldest = process.env.SLUICE_API_SERVER === "oldest" && !isFullRun;
  const names = isFullRun ? undefined : OLDER_DOORS;
  // The newest of the sample is nearly the cluster's own.
  const others = isFullRun ? kubectls() : oldestAndNewest(kubectlSample()).slice(0, -1);
  const commandRuns = [
    { kubectl: newest, cases: kubectlCases, names: isOldest ? names : undefined, note: "" },
    ...others.map((kubectl) => ({ kubectl, cases: streaming, names, note: isOldest ? LEFT_OUT : "" })),
  ];
  const chosen = (row: { readonly note: string }) => (row.note === "" ? describe : describe.skip);
  for (const row of commandRuns)
    chosen(row)(`kubectl ${row.kubectl.version}${row.note}`, () => compareAll(row));

  function compareAll({
    kubectl,
    cases,
    names,
  }: Pick<(typeof commandRuns)[0], "kubectl" | "cases" | "names">) {
    const answers = new Set<string>();
    const isLeftOut = (row: KubectlCase): boolean => isOldest && !isStreaming(row);
    for (const row of cases) {
      const { user, commands, input = "" } = row;
      const title = `${user}: ${commands}`;
      it.skipIf(isLeftOut(row))(`${title}${isLeftOut(row) ? LEFT_OUT : ""}`, async () => {
        const toCase = async (door: Door, known: Known): Promise<Outcome> => {
          const runner = await runnerOf(door, user, kubectl);
          const lines: string[] = [];
          for (const command of commands.replaceAll("$NAME", nameOf(door)).split(" ; ")) {
            const { exitCode, stdout, stderr } = await runner.run(wordsOf(command), { input });
            lines.push(`exit ${exitCode}`, ...pruned(`${stdout}\n${stderr}`, known).split("\n"));
          }
          if (door.name === "straight") answers.add(lines.join("\n"));
          return lines;
        };
        await expectSame(`kubectl ${kubectl.version}`, title, user, toCase, names);
      });
    }
    const rest = DOORS.filter((name) => names?.includes(name) === false);
    if (rest.length > 0) it.skip(`the same at ${rest.join(", ")}${LEFT_OUT}`);

    // One that fails in the same way everywhere shows nothing.
    it("gave as many answers as there are questions", () => {
      expect(answers.size).toBeGreaterThan(cases.filter((row) => !isLeftOut(row)).length / 2);
    });
  }

  const titleOf = ({ user, method, path: target, note }: HttpCase): string =>
    `${user}: ${method} ${target}${note === undefined ? "" : ` (${note})`}`;
  const exchangeOf =
    ({ user, method, path: target, headers = {}, body }: HttpCase) =>
    async (door: Door, known: Known): Promise<Outcome> => {
      const named = (text: string): string => text.replaceAll("$NAME", nameOf(door));
      const sent = { method, path: named(target), headers, ...(body !== undefined && { body: named(body) }) };
      return httpOutcome(await exchange(await door.access(user), sent), known);
    };

  const exchangeRuns = [
    { client: "HTTP", rows: httpCases },
    { client: "upgrades", rows: upgradeCases },
  ];
  describe.each(exchangeRuns)("$client", ({ client, rows }) => {
    for (const row of rows) {
      it(titleOf(row), async () => {
        await expectSame(client, titleOf(row), row.user, exchangeOf(row));
      });
    }
  });

  const generatedRuns = [
    { client: "generated roles", rows: generatedRbacCases() },
    { client: "generated options", rows: generatedOptionCases() },
    { client: "generated paths", rows: generatedPathCases() },
  ];
  describe("generated", () => {
    beforeAll(async () => {
      await applyObjects(newest.path, cluster.adminKubeconfig, generatedRoles());
    });

    it.each(generatedRuns)("$client", async ({ client, rows }) => {
      for (const row of rows) await expectSame(client, titleOf(row), row.user, exchangeOf(row));
    });
  });
  const planned = [
    ...commandRuns.map(({ cases }) => cases),
    ...[...exchangeRuns, ...generatedRuns].map(({ rows }) => rows),
  ].flat().length;
});

function doorsOf(title: string): readonly DoorName[] {
  return isFullRun || REACHES_NODES.test(title) ? DOORS : DOORS.filter((name) => !NODE_DOORS.includes(name));
}

/** What `$NAME` stands for. */
function nameOf(door: Door): string {
  return `t-${door.name}-t`;
}

/** Splits as a shell does: at blanks, and not inside quotes. */
function wordsOf(command: string): string[] {
  return Array.from(command.matchAll(/(?:[^\s'"]|'[^']*'|"[^"]*")+/g), ([word]) =>
    word.replaceAll(/'([^']*)'|"([^"]*)"/g, "$1$2"),
  );
}
