import path from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { KubectlRunner } from "../../support/kubectl.ts";
import { describeReal } from "../../support/real-parts.ts";
import type { Kubectl } from "../../support/real-parts-finder.ts";
import { type Door, type DoorName, type Doors, openDoors, type User } from "../doors.ts";
import type { ClusterAddresses } from "../kubernetes/start-cluster.ts";
import { httpCases } from "./http-cases.ts";
import { unexplained } from "./known-differences.ts";
import { kubectlCases } from "./kubectl-cases.ts";
import { differencesOf, httpOutcome, type Known, type Outcome, pruned } from "./outcome.ts";
import { exchange } from "./raw-exchange.ts";

const DOORS: readonly DoorName[] = ["straight", "gateway", "spdy", "caller", "agent", "node", "both"];

describeReal("cluster", "the same request straight and through Sluice", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  const runners = new Map<string, KubectlRunner>();
  let opened: Doors | undefined;
  beforeAll(async () => {
    opened = await openDoors(cluster, DOORS);
  });
  afterAll(async () => {
    for (const runner of runners.values()) runner.remove();
    await opened?.stop();
  });

  const kubectl: Kubectl = {
    version: cluster.version,
    path: path.join(cluster.programs, "kubectl"),
    minor: 37,
  };
  const runnerOf = async (door: Door, user: User): Promise<KubectlRunner> => {
    const key = `${door.name} ${user}`;
    const runner = runners.get(key) ?? new KubectlRunner(kubectl, await door.access(user));
    runners.set(key, runner);
    return runner;
  };

  /** Runs a case on every way at once and holds each outcome against the one straight at the API server. */
  const compare = async (title: string, user: User, run: (door: Door, known: Known) => Promise<Outcome>) => {
    const doors = opened?.doors ?? [];
    const outcomes = await Promise.all(
      doors.map(async (door) => {
        const { url } = await door.access(user);
        return run(door, { [url]: "$SERVER", [new URL(url).host]: "$HOST", [nameOf(door)]: "$NAME" });
      }),
    );
    const found = doors.map((door, index) => {
      const lines = differencesOf(outcomes[0] ?? [], outcomes[index] ?? []);
      return [door.name, unexplained(door.name, title, lines)] as const;
    });
    expect(Object.fromEntries(found.filter(([, lines]) => lines.length > 0))).toEqual({});
  };

  describe("kubectl", () => {
    it.each(
      kubectlCases.map((row) => ({ ...row, title: `${row.user}: kubectl ${row.commands}` })),
    )("$title", async ({ title, user, commands, input = "" }) => {
      await compare(title, user, async (door, known) => {
        const runner = await runnerOf(door, user);
        const lines: string[] = [];
        for (const command of commands.replaceAll("$NAME", nameOf(door)).split(" ; ")) {
          const { exitCode, stdout, stderr } = await runner.run(wordsOf(command), { input });
          lines.push(`exit ${exitCode}`, ...pruned(`${stdout}\n${stderr}`, known).split("\n"));
        }
        return lines;
      });
    });
  });

  describe("HTTP", () => {
    it.each(
      httpCases.map((row) => ({ ...row, title: `${row.user}: ${row.method} ${row.path}` })),
    )("$title", async ({ title, user, method, path: target, headers = {}, body }) => {
      await compare(title, user, async (door, known) => {
        const named = (text: string): string => text.replaceAll("$NAME", nameOf(door));
        const sent = {
          method,
          path: named(target),
          headers,
          ...(body !== undefined && { body: named(body) }),
        };
        return httpOutcome(await exchange(await door.access(user), sent), known);
      });
    });
  });
});

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
