// `node bench/recording-pairs.mjs [--pairs 60 --processes 6 --work "bulk plain,echoes"
// --contenders sluice,sluice-unmatched --against MAIN_JS --write]`: what sessions cost the event loop
// that are not recorded where others are. All contenders take turns; each turn is compared with the
// first contender's beside it. Takes seven minutes.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { buildRecording } from "../dist/src/recording/component.js";
import { competeWith, contenders } from "./contenders.mjs";
import { machineLine, table, writeSection } from "./document.mjs";
import { readFlags } from "./flags.mjs";
import { Lab } from "./lab.mjs";
import { threadSeconds } from "./processes.mjs";
import { median } from "./results.mjs";
import { measure } from "./workloads.mjs";

const { values } = readFlags({
  options: {
    pairs: { type: "string", default: "60" },
    processes: { type: "string", default: "6" },
    mib: { type: "string", default: "256" },
    work: { type: "string", default: "bulk plain,bulk TLS,set-ups,echoes" },
    contenders: { type: "string", default: "sluice,sluice-unmatched" },
    against: { type: "string" },
    write: { type: "boolean", default: false },
  },
});
const [pairs, processes, mib] = [values.pairs, values.processes, values.mib].map(Number);
if (values.against !== undefined) competeWith(values.against);
const names = values.contenders.split(",");
const isDefault = names.join() === "sluice,sluice-unmatched";
if (values.write && !isDefault) throw new Error("the page has sluice and sluice-unmatched");
const lab = await Lab.open(undefined, { isWithoutGo: true });

const bulk = { direction: "download", sessions: 4, writeBytes: 32 * 1024, bytes: mib * 1024 * 1024 };
/** What one turn does, and how many units the event loop's CPU is divided by. */
const WORK = {
  "bulk plain": { kind: "bulk", cell: { ...bulk, encryption: "plain" }, units: mib / 1024, unit: "s/GiB" },
  "bulk TLS": { kind: "bulk", cell: { ...bulk, encryption: "TLS" }, units: mib / 1024, unit: "s/GiB" },
  "set-ups": { kind: "setup", cell: { encryption: "plain", count: 300 }, units: 0.3, unit: "ms each" },
  echoes: { kind: "echo", cell: { encryption: "plain", rounds: 4000 }, units: 0.004, unit: "µs each" },
};

/** The event loop's CPU of each contender in each turn, in the work's unit. */
async function turns({ kind, cell: rest, units }) {
  const cell = { plan: "translate", ...rest };
  const samples = new Map(names.map((name) => [name, []]));
  for (let process = 0; process < processes; process++) {
    const started = new Map();
    for (const name of names) started.set(name, await lab.fresh(name, cell.encryption));
    const once = async (name) => {
      const contender = started.get(name);
      const before = threadSeconds(contender.child.pid).loop;
      await measure[kind](lab, name, cell, contender);
      return (threadSeconds(contender.child.pid).loop - before) / units;
    };
    const order = process % 2 === 0 ? names : names.toReversed();
    for (const name of order) await once(name);
    for (let pair = 0; pair < pairs / processes; pair++)
      for (const name of pair % 2 === 0 ? order : order.toReversed())
        samples.get(name).push(await once(name));
    for (const contender of started.values()) await lab.stop(contender);
  }
  return samples;
}

/** The mean of the middle half. */
function midmean(sorted) {
  const quarter = Math.floor(sorted.length / 4);
  const middle = sorted.slice(quarter, sorted.length - quarter);
  return middle.reduce((sum, each) => sum + each, 0) / middle.length;
}

const ascending = (one, other) => one - other;

/** The midmean of ratios, and the bounds within which 95 % of resampled ones are. */
function intervalOf(ratios) {
  const resampled = Array.from({ length: 4_000 }, () =>
    midmean(ratios.map(() => ratios[Math.floor(Math.random() * ratios.length)]).sort(ascending)),
  ).sort(ascending);
  return [midmean(ratios.toSorted(ascending)), resampled[100], resampled[3_899]];
}

/** A rule's `match` with all of its fields. */
const MATCH = {
  ...{ users: [], groups: [], namespaces: ["other"], subresources: [] },
  ...{ containers: [], podLabels: {}, command: [] },
};

/** What one decision not to record takes, in microseconds: the median of rounds of 200,000. */
async function decisionTime() {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-recording-"));
  const ignored = new Proxy(() => ignored, { get: () => ignored });
  const recording = await buildRecording(
    { folder, rules: [{ name: "others", match: MATCH }] },
    {
      cluster: { getPod: () => ({ metadata: { labels: { app: "web" } } }) },
      metrics: { addRecording: () => ignored },
      logger: ignored,
      program: fileURLToPath(new URL("../dist/src/recording/thread/recorder-thread.js", import.meta.url)),
    },
  );
  const session = {
    user: { name: "kim", groups: ["developers"] },
    request: { namespace: "default", pod: "web", subresource: "exec", command: ["sh"], streams: {} },
    info: {},
  };
  const rounds = [];
  for (let round = 0; round < 5; round++) {
    const startMs = performance.now();
    for (let count = 0; count < 200_000; count++) await recording.beforeDial(session);
    rounds.push((performance.now() - startMs) / 200);
  }
  await recording.stop();
  rmSync(folder, { recursive: true });
  return median(rounds).toFixed(2);
}

const rows = [];
for (const work of values.work.split(",")) {
  const samples = await turns(WORK[work]);
  const [first, ...others] = names;
  const cpuOf = (name) => median(samples.get(name)).toPrecision(3);
  for (const other of others) {
    const ratios = samples.get(other).map((cpu, turn) => cpu / samples.get(first)[turn]);
    const [middle, low, high] = intervalOf(ratios).map((each) => each.toFixed(3));
    const units = WORK[work].unit;
    rows.push([
      work,
      ...(isDefault ? [] : [contenders[other].title]),
      `${cpuOf(first)} ${units}`,
      `${cpuOf(other)} ${units}`,
      `${middle} (${low}-${high})`,
    ]);
    console.log(rows.at(-1).join(" | "));
  }
}
const head = [
  "event loop's CPU",
  ...(isDefault ? ["without", "with"] : ["of", "the first", "its own"]),
  "ratio (95 %)",
];
const measured = `${machineLine()}

${table(head, rows)}`;
const page = `A session that no rule matches runs no code of the recording's but the decision: four function calls
before the dial, held by \`test/integration/recording/unrecorded-sessions.test.ts\`. They take
${await decisionTime()} µs. What such a session costs the event loop, of what it costs a gateway without the
section \`recording\`; ${pairs} pairs of turns side by side in ${processes} processes each, the mean of the middle
half of their ratios, and the bounds within which 95 % of resampled ones are:

    node bench/recording-pairs.mjs --pairs ${pairs} --processes ${processes}

${measured}`;
console.log(`\n${isDefault ? page : measured}`);
if (values.write) writeSection("recording.md", "Sessions that are not recorded", page);
process.exit();
