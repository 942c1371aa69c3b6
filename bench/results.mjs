// Stores the measurements cell by cell. A cell's contenders ran interleaved, so each cell stands by
// itself; a run of some cells replaces only those.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const fileOf = (name) => new URL(`results/${name}.json`, import.meta.url);

export function openResults(name) {
  let cells = {};
  try {
    cells = JSON.parse(readFileSync(fileOf(name), "utf8")).cells;
  } catch (error) {
    if (error.code !== "ENOENT") throw error;
  }
  return { name, cells };
}

/** Writes the file after every cell, so that a run that is stopped keeps its results. */
export function keepCell(results, cell) {
  results.cells[cell.id] = cell;
  mkdirSync(new URL("results/", import.meta.url), { recursive: true });
  writeFileSync(fileOf(results.name), `${JSON.stringify({ cells: results.cells }, null, 1)}\n`);
}

export const median = (numbers) => {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/**
 * The median of a contender's figure in a cell; undefined if the cell, the contender or the figure
 * is missing.
 */
export function figureOf(cell, name, figure) {
  const samples = cell?.contenders.find((contender) => contender.name === name)?.figures[figure];
  return samples === undefined || samples.length === 0 ? undefined : median(samples);
}
