// `node bench/recording.mjs [--repeat 3 --mib 512 --sessions 2000 --against MAIN_JS]`: prints the
// cost of recording as Markdown tables: CPU of the event loop and of the other threads per GiB of
// output, memory of an idle recorded session, and echo latency. `--against` adds another build.
// Needs no Go, because client and node are this repository's. Takes five minutes.
import { readdirSync, statSync } from "node:fs";
import { competeWith, contenders } from "./contenders.mjs";
import { table } from "./document.mjs";
import { readFlags } from "./flags.mjs";
import { Lab } from "./lab.mjs";
import { machine } from "./machine.mjs";
import { threadSeconds } from "./processes.mjs";
import { median } from "./results.mjs";
import { withSpread } from "./text.mjs";
import { measure, sessionsWithin } from "./workloads.mjs";

const { values } = readFlags({
  options: {
    repeat: { type: "string", default: "3" },
    mib: { type: "string", default: "512" },
    sessions: { type: "string", default: "2000" },
    against: { type: "string" },
  },
});
const [repeat, mib] = [values.repeat, values.mib].map(Number);
/** A recorded session has an open file besides its two sockets. */
const sessions = Math.floor((sessionsWithin(Number(values.sessions) * 1.5) * 2) / 3);
if (values.against !== undefined) competeWith(values.against);
const unrecorded = values.against === undefined ? ["sluice"] : ["sluice", "sluice-other"];
const recordedOnes =
  values.against === undefined ? ["sluice-recorded"] : ["sluice-recorded", "sluice-other-recorded"];
const all = [...unrecorded, ...recordedOnes, "sluice-recorded-past"];
const plan = "translate";
const lab = await Lab.open(undefined, { isWithoutGo: true });
const { cpus, model, node, kernel } = machine();
console.log(
  `${cpus} cores (${model}), Linux ${kernel}, Node.js ${node}; medians of ${repeat} (minimum-maximum)`,
);

/**
 * Runs each contender once a round, in rotation; the first round does not count. Returns each one's
 * samples.
 */
async function inTurns(names, once) {
  const samples = new Map(names.map((name) => [name, []]));
  for (let round = -1; round < repeat; round++)
    for (const [index] of names.entries()) {
      const name = names[(index + round + 1) % names.length];
      const sample = await once(name);
      if (round >= 0) samples.get(name).push(sample);
    }
  return samples;
}

const bytesBelow = (folder) =>
  readdirSync(folder, { recursive: true }).reduce((sum, name) => sum + statSync(`${folder}/${name}`).size, 0);

const rowsOf = (samples, figures) =>
  Array.from(samples, ([name, some]) => [
    contenders[name].title,
    ...figures.map(([figure, digits]) =>
      withSpread(
        some.map((each) => each[figure]),
        digits,
      ),
    ),
  ]);

async function bulk(encryption) {
  const started = new Map();
  for (const name of all) started.set(name, await lab.fresh(name, encryption));
  const bytes = mib * 1024 * 1024;
  const cell = { plan, encryption, direction: "download", sessions: 4, writeBytes: 32 * 1024, bytes };
  const samples = await inTurns(all, async (name) => {
    const contender = started.get(name);
    const before = threadSeconds(contender.child.pid);
    const { mib_per_s: speed } = await measure.bulk(lab, name, cell, contender);
    const after = threadSeconds(contender.child.pid);
    const gib = mib / 1024;
    return { loop: (after.loop - before.loop) / gib, others: (after.others - before.others) / gib, speed };
  });
  const written = bytesBelow(started.get("sluice-recorded").folderOfRecordings);
  if (written < bytes * (repeat + 1)) throw new Error(`${written} bytes are recorded: output is missing`);
  for (const contender of started.values()) await lab.stop(contender);
  const plain = median(samples.get("sluice").map(({ loop }) => loop));
  const head = [
    `bulk, ${encryption}`,
    "event loop, CPU s/GiB",
    "other threads, CPU s/GiB",
    "MiB/s",
    "event loop, of unrecorded",
  ];
  const rows = rowsOf(samples, [
    ["loop", 2],
    ["others", 2],
    ["speed", 0],
  ]);
  const ratios = Array.from(
    samples.values(),
    (some) => `${(median(some.map(({ loop }) => loop)) / plain).toFixed(2)}x`,
  );
  return table(
    head,
    rows.map((row, index) => [...row, ratios[index]]),
  );
}

async function memory() {
  const cell = { plan, encryption: "plain", sessions, hold: "2s" };
  const names = [...unrecorded, ...recordedOnes];
  const samples = new Map();
  for (const name of names) {
    const each = [];
    for (let round = 0; round < Math.min(repeat, 3); round++) each.push(await measure.idle(lab, name, cell));
    samples.set(
      name,
      each.map(({ kib_per_session: kib }) => ({ kib })),
    );
  }
  const [without, recorded] = ["sluice", "sluice-recorded"].map((name) =>
    median(samples.get(name).map(({ kib }) => kib)),
  );
  return [
    table([`${sessions} idle sessions`, "KiB of resident memory each"], rowsOf(samples, [["kib", 1]])),
    `Recording adds ${(recorded - without).toFixed(1)} KiB to an idle session; the bar is 64 KiB.`,
  ].join("\n\n");
}

async function echoes() {
  const figures = [
    ["p50", 0],
    ["p99", 0],
  ];
  const names = [...unrecorded, ...recordedOnes];
  const parts = [];
  for (const [what, kind, cell] of [
    ["alone", "echo", { rounds: 2000 }],
    ["beside a session that floods", "echo under load", { rounds: 2000, within: "2s", bulkSessions: 1 }],
  ]) {
    const samples = await inTurns(names, async (name) => {
      const { p50_us: p50, p99_us: p99 } = await measure[kind](lab, name, {
        plan,
        encryption: "plain",
        ...cell,
      });
      return { p50, p99 };
    });
    parts.push(...rowsOf(samples, figures).map(([title, ...rest]) => [`${title}, ${what}`, ...rest]));
    await lab.clear();
  }
  return table(["echo, plain", "p50, µs", "p99, µs"], parts);
}

for (const part of [() => bulk("plain"), () => bulk("TLS"), memory, echoes]) console.log(`\n${await part()}`);
process.exit();
