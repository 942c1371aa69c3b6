// Formats a cell as lines for a terminal and as rows of a Markdown table.
import { median } from "./results.mjs";
import { figures } from "./workloads.mjs";

const number = (value, digits) => value.toFixed(digits);

/** `median (min-max)`; only the median if there is one sample. */
export function withSpread(samples, digits) {
  const middle = number(median(samples), digits);
  if (samples.length < 2) return middle;
  return `${middle} (${number(Math.min(...samples), digits)}-${number(Math.max(...samples), digits)})`;
}

export const figuresShown = ({ kind, writeBytes }) =>
  figures[kind].filter(([name]) => kind !== "bulk" || name !== (writeBytes === 64 ? "cpu" : "cpuPerWrite"));

export function linesOfCell(cell) {
  const width = Math.max(...cell.contenders.map(({ title }) => title.length));
  const rows = cell.contenders.map(({ title, figures: kept }) => {
    const columns = figuresShown(cell)
      .filter(([name]) => kept[name].every(Number.isFinite))
      .map(
        ([name, , unit, digits]) =>
          `${name === "speed" || name === "cpu" ? "" : `${name} `}${withSpread(kept[name], digits)} ${unit}`,
      );
    return `  ${title.padEnd(width)}  ${columns.join("   ")}`;
  });
  return [cell.id, ...rows];
}
