// Writes docs/evidence/growth.md from results/growth.json: a table, a chart and an exponent for
// each curve.
import { mkdirSync, writeFileSync } from "node:fs";
import { powerChart } from "./charts.mjs";
import { machineText, table } from "./document.mjs";
import { figureOf } from "./results.mjs";
import { withSpread } from "./text.mjs";

const DOCUMENT = new URL("../docs/evidence/growth.md", import.meta.url);
const CHARTS = new URL("../docs/evidence/charts/", import.meta.url);
/** Exponents use the points from this number on: a single session's client or node is its limit. */
const FROM = 8;

/** The figures to draw for each kind of cell, [key, description, unit, digits]. */
const DRAWN = {
  steady: [
    ["cpu", "CPU per GiB", "CPU s/GiB", 2],
    ["speed", "throughput", "MiB/s", 0],
  ],
  "echo under load": [["p99", "p99 of an echo", "µs", 0]],
};

export function writeGrowthDocument(results) {
  const cells = Object.values(results.cells);
  mkdirSync(CHARTS, { recursive: true });
  const curves = new Map();
  for (const cell of cells) {
    const curve = cell.id.slice(0, cell.id.lastIndexOf("/"));
    curves.set(curve, [...(curves.get(curve) ?? []), cell]);
  }
  const sections = Array.from(curves, ([id, points]) => sectionOf(id, points));
  writeFileSync(
    DOCUMENT,
    `# Growth

${summaryOf([...curves])}

An exponent of 0 is flat; with 0.25 a figure doubles from 8 sessions to 128. It is fitted to the medians
from ${FROM} sessions on. Written by \`npm run bench -- growth\` ([method](../../bench/README.md)).

${machineText(cells)}

${sections.join("\n\n")}
`,
  );
}

function sectionOf(id, points) {
  const title = id.split("/").slice(1).join(", ");
  const sorted = points.toSorted((one, other) => one.sessions - other.sessions);
  const names = new Map(
    sorted.flatMap(({ contenders }) => contenders.map(({ name, title: text }) => [name, text])),
  );
  const parts = DRAWN[sorted[0].kind].map(([figure, what, unit, digits]) => {
    const rows = Array.from(names, ([name, text]) => [
      text,
      ...sorted.map(({ contenders }) => {
        const samples = contenders.find((one) => one.name === name)?.figures[figure];
        return samples === undefined ? "" : withSpread(samples, digits);
      }),
      exponentText(curveOf(sorted, name, figure)),
    ]);
    const ratios = sorted.map((cell) => {
      const [ours, theirs] = ["sluice", "kubernetes"].map((name) => figureOf(cell, name, figure));
      return ours === undefined || theirs === undefined ? "" : `${(ours / theirs).toFixed(2)}x`;
    });
    const file = `growth-${title}-${figure}.svg`.toLowerCase().replaceAll(/[ ,]+/g, "-");
    const lines = Array.from(names, ([name, text]) => ({
      name: text,
      points: curveOf(sorted, name, figure),
    }));
    writeFileSync(new URL(file, CHARTS), `${powerChart(`${title}: ${what}`, unit, "sessions", lines)}\n`);
    const head = [`${what}, ${unit}`, ...sorted.map(({ sessions }) => String(sessions)), "exponent"];
    return `${table(head, [...rows, ["Sluice, of Kubernetes'", ...ratios, ""]])}\n\n![${title}, ${what}](charts/${file})`;
  });
  return `## ${title.replace(/^./, (letter) => letter.toUpperCase())}\n\n${parts.join("\n\n")}`;
}

const curveOf = (cells, name, figure) =>
  cells.flatMap((cell) => {
    const value = figureOf(cell, name, figure);
    return value === undefined ? [] : [[cell.sessions, value]];
  });

/** The exponent e of y = c * n ^ e, by least squares of the logarithms. */
export function exponentOf(points) {
  const some = points
    .filter(([count]) => count >= FROM)
    .map(([count, value]) => [Math.log(count), Math.log(value)]);
  if (some.length < 2) return undefined;
  const mean = (index) => some.reduce((sum, point) => sum + point[index], 0) / some.length;
  const [x, y] = [mean(0), mean(1)];
  const slope = some.reduce((sum, [a, b]) => sum + (a - x) * (b - y), 0);
  return slope / some.reduce((sum, [a]) => sum + (a - x) ** 2, 0);
}

const exponentText = (points) => exponentOf(points)?.toFixed(2) ?? "";

function summaryOf(curves) {
  const texts = curves.flatMap(([id, cells]) => {
    const figure = DRAWN[cells[0].kind][0][0];
    const [ours, theirs] = ["sluice", "kubernetes"].map((name) => exponentText(curveOf(cells, name, figure)));
    if (ours === "") return [];
    return [
      `${id.split("/").slice(1, 3).join(" over ")} ${ours}${theirs === "" ? "" : ` (Kubernetes' handlers ${theirs})`}`,
    ];
  });
  return `Exponents of what Sluice's work costs as sessions grow: ${texts.join("; ")}.`;
}
