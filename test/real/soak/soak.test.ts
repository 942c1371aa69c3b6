import { readdirSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { Http1Downstream } from "../../../src/http/downstream/http1-downstream.ts";
import { Http2Downstream } from "../../../src/http/downstream/http2-downstream.ts";
import { HttpExchange } from "../../../src/http/upstream/http-forwarder.ts";
import { eventually } from "../../support/eventually.ts";
import { type ProcessState, processTree, stateOf } from "./process-state.ts";
import { closeClients, requestScenarios } from "./requests.ts";
import { Chance } from "./seeded.ts";
import { ForeignBytes, Interrupted, type Scenario, sessionScenarios } from "./sessions.ts";
import { type SoakWorld, startSoakWorld } from "./world.ts";

/** SLUICE_SOAK_MINUTES=30 is the long run; without it a short one shows that it works. */
const MINUTES = Number(process.env.SLUICE_SOAK_MINUTES ?? 0.25);
/** Classes of which nothing is left without clients. */
const EXCHANGES: readonly string[] = [
  ...[HttpExchange, Http1Downstream, Http2Downstream].map(({ name }) => name),
  "ServerHttp2Stream",
  "ServerHttp2Session",
];
const SEED = Number(process.env.SLUICE_SOAK_SEED ?? 1);
const LOOPS = 12;
const SCENARIO_TIMEOUT_MS = 90_000;
/** From SIGTERM to the exit of a gateway whose clients are gone; short runs share their machine with other tests. */
const MAX_EXIT_MS = process.env.SLUICE_SOAK_MINUTES === undefined ? 20_000 : 2_000;
/** What was under way when a worker was killed may break for so long afterwards. */
const WORKER_KILL_EVERY_MS = Math.min(60_000, (MINUTES * 60_000) / 4);

const scenarios: Readonly<Record<string, Scenario>> = { ...sessionScenarios, ...requestScenarios };
const users = Object.keys(sessionScenarios);

/** What the gateway may report of each kind of session: who ended it, and why. */
const ENDS: Readonly<Record<keyof typeof sessionScenarios, readonly string[]>> = {
  "v5-whole": ["node completed"],
  "v5-close": ["client client-gone"],
  "v5-kill": ["client client-gone"],
  "v5-node-lost": ["node upstream-lost"],
  "v5-garbage": ["client protocol-error", "client client-gone"],
  "spdy-whole": ["node completed"],
  "spdy-kill": ["client client-gone"],
  "spdy-node-lost": ["node upstream-lost"],
  "forward-whole": ["client client-gone"],
  "forward-kill": ["client client-gone"],
  refused: [],
};

/** What the primary writes of the sessions of a killed worker, which is true of any of them. */
const WORKER_DIED = "the worker that carried the session died";

/** Scenarios that a killed worker broke, and kills, in the order in which they happened: what an end that is not true is held against. */
const breaks: string[] = [];

interface Outcome {
  done: number;
  interrupted: number;
}

let world: SoakWorld | undefined;

afterEach(async () => {
  closeClients();
  await world?.stop();
  world = undefined;
});

describe.each([
  ["one process", 1],
  ["two workers that are killed", 2],
])("mixed load with misbehaviour on both sides, %s", (_, workers) => {
  it(
    `holds for ${MINUTES} min`,
    async () => {
      world = await startSoakWorld(users, workers);
      const failures: string[] = [];
      // Caches fill, code is compiled: what is compared with what is left after a first part of the load.
      await load(world, SEED, 0.2 * MINUTES * 60_000, workers, failures);
      expect(failures).toEqual([]);
      const before = await atRest(world);
      const outcomes = await load(world, SEED + 1, 0.8 * MINUTES * 60_000, workers, failures);
      expect(failures).toEqual([]);
      const after = await atRest(world);

      console.table(Object.fromEntries(outcomes));
      console.table({ before: summaryOf(before), after: summaryOf(after) });
      expect(world.child.exitCode).toBeNull();
      expect(internalErrors(world)).toEqual([]);
      expect(untrueEnds(world)).toEqual([]);
      expect(growthOf(before, after)).toEqual([]);
      expect(exchangesOf(after)).toBe(0);
      // A worker that was killed may have started a session, or ended it, without a word to the primary.
      if (workers === 1) {
        expect(linesOf(world, "session ended").length).toBe(linesOf(world, "session started").length);
      }
      const { ms, code } = await world.terminate();
      console.log(`exited ${Math.round(ms)} ms after SIGTERM`);
      expect(code).toBe(0);
      expect(ms).toBeLessThan(MAX_EXIT_MS);
    },
    (MINUTES * 60 + 600) * 1_000,
  );
});

/** Scenarios in turns that the seed chooses, in several loops at once, until the time is up. */
async function load(
  running: SoakWorld,
  seed: number,
  durationMs: number,
  workers: number,
  failures: string[],
): Promise<Map<string, Outcome>> {
  const until = performance.now() + durationMs;
  const outcomes = new Map<string, Outcome>(
    Object.keys(scenarios).map((name) => [name, { done: 0, interrupted: 0 }]),
  );
  let lastKillMs = Number.NEGATIVE_INFINITY;
  const killer = setInterval(() => {
    if (workers === 1) return;
    const [, ...children] = processTree(running.child.pid as number);
    lastKillMs = performance.now();
    const victim = children[0];
    if (victim === undefined) return;
    breaks.push(`${new Date().toISOString()} killed ${victim}`);
    process.kill(victim, "SIGKILL");
  }, WORKER_KILL_EVERY_MS);
  const loops = Array.from({ length: LOOPS }, async (_, index) => {
    const chance = new Chance(seed * 1_000 + index);
    while (performance.now() < until && failures.length === 0) {
      const name = chance.oneOf(Object.keys(scenarios));
      const outcome = outcomes.get(name) as Outcome;
      const startedMs = performance.now();
      try {
        await within(SCENARIO_TIMEOUT_MS, (scenarios[name] as Scenario)(running, chance));
        outcome.done += 1;
      } catch (error) {
        outcome.interrupted += 1;
        if (!name.endsWith("node-lost")) breaks.push(`${new Date().toISOString()} ${name}: ${error}`);
        const mayBreak = name.endsWith("node-lost") || (workers > 1 && lastKillMs > startedMs - 10_000);
        const isForeign = error instanceof ForeignBytes;
        if (isForeign || !mayBreak) failures.push(`${name}: ${error instanceof Error ? error.stack : error}`);
        else if (!(error instanceof Interrupted)) await new Promise((resolve) => setTimeout(resolve, 100));
      }
      if (running.child.exitCode !== null)
        failures.push(`the gateway ended with ${running.child.exitCode}: ${running.tail()}`);
    }
  });
  await Promise.all(loops);
  clearInterval(killer);
  return outcomes;
}

async function within(limitMs: number, scenario: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not over after ${limitMs} ms`)), limitMs);
  });
  await Promise.race([scenario, late]).finally(() => clearTimeout(timer));
}

/** Clients are gone: until no session and no connection of theirs is left. */
async function atRest(running: SoakWorld): Promise<ProcessState> {
  closeClients();
  const list = async () =>
    (await (await fetch(new URL("/debug/sessions", running.adminUrl))).json()) as unknown[];
  await eventually("no session is left", async () => (await list()).length === 0, { timeoutMs: 60_000 });
  running.endBackendConnections();
  const pid = running.child.pid as number;
  let sockets = Number.NaN;
  let same = 0;
  await eventually(
    () => `connections are closed; ${sockets} sockets are left`,
    () => {
      const now = readdirSync(`/proc/${pid}/fd`).length;
      same = now === sockets ? same + 1 : 0;
      sockets = now;
      return same >= 20;
    },
    { timeoutMs: 120_000, intervalMs: 250 },
  );
  // Of workers, which are killed and replaced, the primary is what stays.
  return stateOf(pid, running.folder);
}

function summaryOf(state: ProcessState) {
  const { residentBytes, descriptors, sockets, objects } = state;
  const all = [...objects.values()].reduce((sum, count) => sum + count, 0);
  const exchanges = exchangesOf(state);
  return { "RSS MiB": Math.round(residentBytes / 2 ** 20), descriptors, sockets, exchanges, objects: all };
}

/** Requests, and HTTP/2 streams and connections of clients, that are on the heap. */
function exchangesOf({ objects }: ProcessState): number {
  return EXCHANGES.reduce((sum, name) => sum + (objects.get(name) ?? 0), 0);
}

/** What there is clearly more of than before, by name. */
function growthOf(before: ProcessState, after: ProcessState): string[] {
  const grown = [...after.objects]
    .map(([name, count]) => ({ name, count, was: before.objects.get(name) ?? 0 }))
    .filter(({ count, was }) => count > was * 1.25 + 100)
    .map(({ name, count, was }) => `${name}: ${was} -> ${count}`);
  if (after.descriptors > before.descriptors + 8) {
    grown.push(`descriptors: ${before.descriptors} -> ${after.descriptors}`);
  }
  return grown;
}

interface SessionLine {
  readonly session: { readonly user: string };
  readonly endedBy?: string;
  readonly cause?: string;
  readonly reason?: string;
}

function linesOf(running: SoakWorld, message: string): SessionLine[] {
  return running.log().filter(({ msg }) => msg === message) as unknown as SessionLine[];
}

/** Ends that are not what was done to the session, by kind, with how often each was reported. */
function untrueEnds(running: SoakWorld): string[] {
  const counts = new Map<string, number>();
  const untrue: string[] = [];
  for (const line of linesOf(running, "session ended")) {
    const { session, endedBy, cause, reason } = line;
    if (reason === WORKER_DIED) continue;
    const kind = session.user.replace("soak-", "") as keyof typeof ENDS;
    const end = `${endedBy} ${cause}`;
    const key = `${kind}: ${end}${ENDS[kind].includes(end) ? "" : " is not true"}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
    if (key.endsWith("not true")) untrue.push(JSON.stringify(line));
  }
  console.table(Object.fromEntries([...counts].toSorted()));
  if (untrue.length > 0) console.log([...untrue, ...breaks].join("\n"));
  return [...counts.keys()].filter((key) => key.endsWith("not true"));
}

function internalErrors(running: SoakWorld): string[] {
  return running
    .log()
    .filter(({ level, signal }) => (level === "error" || level === "fatal") && signal !== "SIGKILL")
    .map((line) => JSON.stringify(line).slice(0, 2_000));
}
