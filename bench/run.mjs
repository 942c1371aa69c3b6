// `npm run bench [-- growth] [-- --quick | --full] [--only PATTERN] [--node PATH] [--repeat 5]
// [--list] [--against MAIN_JS [--against-flags NODE_FLAGS]]`: measures the cells of suite.mjs,
// stores them in results/bench.json and writes the tables and charts of
// docs/evidence/performance.md from there. See README.md.
import { competeWith, contenders, nodeOf } from "./contenders.mjs";
import { writeDocument } from "./document.mjs";
import { readFlags } from "./flags.mjs";
import { writeGrowthDocument } from "./growth-document.mjs";
import { baseOf, Lab } from "./lab.mjs";
import { machine, nodeVersion } from "./machine.mjs";
import { hasGo } from "./peer-programs.mjs";
import { Progress } from "./progress.mjs";
import { keepCell, openResults } from "./results.mjs";
import { growthSuite, suite } from "./suite.mjs";
import { linesOfCell } from "./text.mjs";
import { figures, measure } from "./workloads.mjs";

const { values, positionals } = readFlags({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false },
    full: { type: "boolean", default: false },
    only: { type: "string" },
    node: { type: "string" },
    repeat: { type: "string", default: "5" },
    list: { type: "boolean", default: false },
    json: { type: "string" },
    against: { type: "string" },
    "against-flags": { type: "string" },
  },
});
const isGrowth = positionals.join() === "growth";
if (positionals.length > 0 && !isGrowth)
  throw new Error(`${positionals.join(" ")}: growth is the one suite with a name`);
/**
 * Contenders whose failure fails the cell. With hundreds of sessions the pipe, and client-go with
 * Kubernetes' handlers, sometimes fail.
 */
const MUST_BE_RIGHT = new Set(
  isGrowth ? ["sluice"] : ["pipe", "sluice", "sluice-traced", "sluice-traced-all", "kubernetes"],
);
const size = values.quick ? "quick" : values.full ? "full" : "default";
const otherNode =
  values.node === undefined ? undefined : { path: values.node, version: nodeVersion(values.node) };

const absent = new Map();
const whyAbsent = (name) => {
  if (name.endsWith("@node")) return otherNode === undefined ? "no --node PATH was given" : undefined;
  return contenders[baseOf(name)].missing?.();
};
const takesPart = (plan) => (name) => {
  const reason = whyAbsent(name);
  if (reason !== undefined) absent.set(name, reason);
  return reason === undefined && contenders[baseOf(name)].via[plan] !== undefined;
};
const pattern = new RegExp(values.only ?? "");
if (values.against !== undefined) competeWith(values.against, values["against-flags"]);
/** With `--against`, a cell has only the two builds and the pipe. */
const inCell = (names) =>
  values.against === undefined
    ? names
    : names.flatMap((name) => {
        if (baseOf(name) === "sluice") return [name, name.replace("sluice", "sluice-other")];
        return baseOf(name) === "pipe" ? [name] : [];
      });
const cells = (isGrowth ? growthSuite : suite)(size, { repeat: Number(values.repeat) })
  .filter(({ id }) => pattern.test(id))
  // Only Kubernetes' own node speaks WebSocket.
  .filter(({ plan }) => hasGo() || (plan !== "WebSocket pass-through" && nodeOf(plan) === "SPDY"))
  .map((cell) => ({ ...cell, contenders: inCell(cell.contenders).filter(takesPart(cell.plan)) }));
if (values.list) {
  for (const { id, contenders: names } of cells) console.log(`${id}  (${names.join(", ")})`);
  process.exit();
}
for (const [name, reason] of absent) console.log(`without ${name}: ${reason}`);

const command = `npm run bench${process.argv.length > 2 ? ` -- ${process.argv.slice(2).join(" ")}` : ""}`;
const lab = await Lab.open(otherNode?.path);
const ownResults = isGrowth ? "growth" : "bench";
const results = openResults(
  values.json ?? (values.against ? "against" : values.quick ? "quick" : ownResults),
);
const progress = new Progress(cells);
const failures = [];
/** Running contenders that have carried BYTES_TO_WARM_UP, as `name direction`. */
const warm = new Set();
let previous;

for (const cell of cells) {
  if (
    previous !== undefined &&
    (previous.plan !== cell.plan || previous.encryption !== cell.encryption || previous.kind !== cell.kind)
  ) {
    await clear();
  }
  previous = cell;
  try {
    const kept = await measureCell(cell);
    keepCell(results, {
      ...kept,
      command: `npm run bench -- ${isGrowth ? "growth " : ""}--only '^${cell.id}$'`,
    });
    progress.print(linesOfCell(kept));
  } catch (error) {
    failures.push(`${cell.id}: ${error.message}`);
    progress.print([`${cell.id}: FAILED: ${error.message}`]);
    await clear();
  }
}
progress.end();
await lab.clear();
if (results.name === ownResults && values.against === undefined)
  (isGrowth ? writeGrowthDocument : writeDocument)(results);
for (const failure of failures) console.error(`FAILED ${failure}`);
console.log(`${cells.length - failures.length} of ${cells.length} cells; ${command}`);
process.exit(failures.length === 0 ? 0 : 1);

/**
 * Measures one cell: a round that does not count, then `repeat` rounds in which the contenders take
 * turns. A peer that gives a wrong answer is excluded and reported; a contender of MUST_BE_RIGHT
 * fails the cell.
 */
async function measureCell(cell) {
  const samples = cell.contenders.map(() => []);
  const leftOut = new Map();
  let foreignShare = 0;
  // The first round warms caches and the compiler, and shows that every contender answers
  // correctly.
  for (let round = cell.isUncounted === false ? 0 : -1; round < cell.repeat; round++) {
    // The first contender of a round may find the machine in another state, so the order rotates.
    for (const index of rotated(cell.contenders, round + 1)) {
      const name = cell.contenders[index];
      progress.step(cell, name, round + 1);
      if (leftOut.has(name)) continue;
      try {
        const result = await measure[cell.kind](lab, name, round < 0 ? warmUpOf(cell, name) : cell);
        if (round < 0) continue;
        samples[index].push(result);
        foreignShare = Math.max(foreignShare, result.foreign_share ?? 0);
      } catch (error) {
        if (MUST_BE_RIGHT.has(baseOf(name))) throw error;
        leftOut.set(name, error.message);
        progress.print([`${cell.id}: without ${name}: ${error.message}`]);
      }
    }
  }
  const { contenders: all, ...rest } = cell;
  const names = all.filter((name) => !leftOut.has(name));
  return {
    ...rest,
    machine: machine(),
    peers: lab.peers,
    measuredAt: new Date().toISOString(),
    // The largest share of the machine that other programs used during a sample.
    foreignShare: Number(foreignShare.toFixed(2)),
    leftOut: Object.fromEntries(leftOut),
    contenders: names.map((name) => ({
      name,
      title: contenders[baseOf(name)].title + (name.endsWith("@node") ? `, Node ${otherNode.version}` : ""),
      figures: Object.fromEntries(
        figures[cell.kind].map(([figure, key]) => [
          figure,
          samples[all.indexOf(name)].map((result) => result[key]),
        ]),
      ),
      ...(cell.kind === "request growth" ? { points: samples[all.indexOf(name)][0].points } : {}),
    })),
  };
}

/** Ends all contenders, so the next ones start cold. */
async function clear() {
  await lab.clear();
  warm.clear();
}

/**
 * Each contender warms up once in each direction; later a quarter of a sample is enough to check
 * its answers.
 */
function warmUpOf(cell, name) {
  if (cell.bytes) {
    const key = `${name} ${cell.direction}`;
    const isWarm = warm.has(key) || cell.warmUpBytes === undefined;
    warm.add(key);
    return { ...cell, bytes: isWarm ? cell.bytes / 4 : cell.warmUpBytes };
  }
  return cell.warmUpCount ? { ...cell, count: cell.warmUpCount } : cell;
}

function rotated(list, by) {
  return list.map((_, index) => (index + by) % list.length);
}
