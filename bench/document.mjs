// Writes the measurements into docs/evidence/performance.md, between two markers, and its charts
// beside it. All figures are generated.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { barRows } from "./bars.mjs";
import { charts } from "./charts.mjs";
import { machine } from "./machine.mjs";
import { median } from "./results.mjs";
import { figuresShown } from "./text.mjs";

const DOCUMENT = new URL("../docs/evidence/performance.md", import.meta.url);
const CHARTS = new URL("../docs/evidence/charts/", import.meta.url);
const BEGIN = "<!-- bench: begin (written by `npm run bench` from bench/results/bench.json) -->";
const END = "<!-- bench: end -->";

export function writeDocument(results) {
  const cells = Object.values(results.cells);
  mkdirSync(CHARTS, { recursive: true });
  const drawn = charts(cells);
  for (const [file, svg] of drawn) writeFileSync(new URL(file, CHARTS), `${svg}\n`);
  const text = readFileSync(DOCUMENT, "utf8");
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin === -1 || end === -1) throw new Error("docs/evidence/performance.md has lost its markers");
  const body = [
    machineText(cells, spreadText(cells)),
    barsText(results.cells),
    ...groupsText(cells),
    chartsText(drawn),
  ].join("\n\n");
  writeFileSync(DOCUMENT, `${text.slice(0, begin + BEGIN.length)}\n\n${body}\n\n${text.slice(end)}`);
}

export function machineText(cells, figures = "median (minimum-maximum)") {
  const days = cells.map(({ measuredAt }) => measuredAt.slice(0, 10)).sort();
  const [{ machine }] = cells;
  const span = days[0] === days.at(-1) ? days[0] : `${days[0]} to ${days.at(-1)}`;
  const foreign = Math.max(...cells.map(({ foreignShare }) => foreignShare));
  return `| | |
|---|---|
| machine | ${machine.cpus} cores (${machine.model}), ${machine.memoryGib} GiB, Linux ${machine.kernel}; ${span} |
| programs | Node.js ${machine.node}, Go ${machine.go ?? "absent"}, k8s.io ${machine.kubernetes}, HAProxy ${machine.haproxy ?? "absent"} |
| client and node | ${[...new Set(cells.map(({ peers }) => peers))].join(" and ")}'; they share the cores with the proxy |
| other programs | at most ${(foreign * 100).toFixed(0)} % of the machine in any sample |
| figures | ${figures}; contenders take turns |`;
}

/**
 * The distance of minima and maxima from their medians: half of the range, relative to the median.
 */
function spreadText(cells) {
  const spreads = cells
    .flatMap((cell) =>
      cell.contenders.flatMap(({ figures }) => figuresShown(cell).map(([figure]) => figures[figure])),
    )
    .filter((samples) => samples?.length > 1 && samples.every(Number.isFinite) && median(samples) > 0)
    .map((samples) => (Math.max(...samples) - Math.min(...samples)) / 2 / median(samples))
    .sort((one, other) => one - other);
  const within = (part) => `${Math.ceil(spreads[Math.floor(part * (spreads.length - 1))] * 100)} %`;
  return `median, from minimum to maximum within ±${within(0.5)} for half of them and ±${within(0.9)} for nine tenths (all samples: bench/results/bench.json)`;
}

/** The machine, in one line, for pages without results/. */
export function machineLine() {
  const { cpus, model, kernel, node } = machine();
  const day = new Date().toISOString().slice(0, 10);
  return `${cpus} cores (${model}), Linux ${kernel}, Node.js ${node}; ${day}.`;
}

/** Replaces what stands below a heading of a page in docs/evidence, up to the next heading. */
export function writeSection(page, heading, body) {
  const file = new URL(`../docs/evidence/${page}`, import.meta.url);
  const text = readFileSync(file, "utf8");
  const begin = text.indexOf(`\n## ${heading}\n`);
  if (begin === -1) throw new Error(`docs/evidence/${page} has lost its heading ${heading}`);
  const next = text.indexOf("\n## ", begin + 1);
  const rest = next === -1 ? "" : text.slice(next);
  writeFileSync(file, `${text.slice(0, begin)}\n## ${heading}\n\n${body}\n${rest}`);
}

export const table = (head, rows) =>
  [head, ...rows]
    .map((row) => `| ${row.join(" | ")} |`)
    .toSpliced(1, 0, `${"|---".repeat(head.length)}|`)
    .join("\n");

function barsText(cells) {
  const { rows, met, measured } = barRows(cells);
  return `## Bars

${met} of ${measured} bars (bench/bars.mjs) are met. The table lists the workloads that miss one (in bold).
K: of Kubernetes' handlers. P: of the plain Node pipe.

${table(
  ["workload", "measured (bar)"],
  byWorkload(rows).filter(([, text]) => text.includes("**")),
)}`;
}

/**
 * A workload's bars, as one line: `CPU per GiB K 0.31x (<= 0.4x)`. Bars that are not met are bold.
 */
function byWorkload(rows) {
  const groups = new Map();
  for (const [workload, what, measured, limit, state] of rows) {
    const name = what.replace("of Kubernetes'", "K").replace("of the pipe", "P");
    const text = `${name} ${measured} (${limit})`;
    const shown = state === "**not met**" ? `**${text}**` : text;
    groups.set(workload, [...(groups.get(workload) ?? []), shown]);
  }
  return Array.from(groups, ([workload, texts]) => [workload, texts.join("; ")]);
}

/**
 * One table for each workload; bulk transfers have one for each path and encryption. A row for each
 * cell, a column for each contender.
 */
function groupsText(cells) {
  return Array.from(groupBy(cells), ([group, some]) => {
    const names = new Map(
      some.flatMap(({ contenders }) => contenders.map(({ name, title }) => [name, title])),
    );
    const [first] = some;
    const isOf = (units) => (units === unitsOf(first) ? "" : `: ${units}`);
    const rows = some.map((cell) => [
      `${cell.id.split("/").slice(partsOf(cell)).join(", ").replace(", 32 KiB", "")}${isOf(unitsOf(cell))}`,
      ...Array.from(names.keys(), (name) => cellText(cell, name)),
    ]);
    const leftOut = some.flatMap((cell) =>
      Object.entries(cell.leftOut).map(
        ([name, why]) => `${name} (${cell.id}: ${why.split("first: ").at(-1)})`,
      ),
    );
    const notes = leftOut.length === 0 ? "" : `\n\nFailed: ${leftOut.join("; ")}.`;
    return `## ${group}\n\n${table([unitsOf(first), ...names.values()], rows)}${notes}`;
  });
}

/** The number of parts of a cell's id that name its table; the other parts name its row. */
const partsOf = ({ id }) => (id.startsWith("bulk/") ? 3 : 1);
const groupOf = (cell) => cell.id.split("/").slice(0, partsOf(cell)).join(", ");

function groupBy(cells) {
  const groups = new Map();
  for (const cell of cells) {
    const group = groupOf(cell);
    groups.set(group, [...(groups.get(group) ?? []), cell]);
  }
  return groups;
}

function cellText(cell, name) {
  const contender = cell.contenders.find((one) => one.name === name);
  if (contender === undefined) return "";
  return figuresShown(cell)
    .filter(([figure]) => figure !== "cpu" || name !== "direct")
    .filter(([figure]) => figure !== "cpuPerWrite" || name !== "direct")
    .map(([figure, , , digits]) => median(contender.figures[figure]).toFixed(digits))
    .join("<br>");
}

/**
 * The units of the lines in a row's cells, in order. The table's head has those of the first row.
 */
const unitsOf = (cell) =>
  figuresShown(cell)
    .map(([figure, , unit]) => (/^p\d/.test(figure) ? `${figure} ${unit}` : unit))
    .join("; ");

const chartsText = (drawn) => {
  const named = (file) => file.replace(/\.svg$/, "").replaceAll("-", " ");
  return `## Drawn\n\n${drawn.map(([file]) => `![${named(file)}](charts/${file})`).join("\n\n")}`;
};
