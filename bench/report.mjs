// What the benches share: medians, the lines that are printed, the JSON that is kept.
import { mkdirSync, writeFileSync } from "node:fs";
import os from "node:os";

export const median = (numbers) => {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

const spread = (numbers, digits) =>
  `${Math.min(...numbers).toFixed(digits)}-${Math.max(...numbers).toFixed(digits)}`;

/** One line a contender: medians with spread, and ratios to the first. `speeds` in MiB/s, `cpus` in seconds per GiB. */
export function printRows(test, sessions, rows) {
  const [first] = rows;
  for (const { name, speeds, cpus } of rows) {
    const speed = `${median(speeds).toFixed(0).padStart(6)} MiB/s (${spread(speeds, 0)})`;
    const cpu = `CPU ${median(cpus).toFixed(2)} s/GiB (${spread(cpus, 2)})`;
    const ratios = [median(speeds) / median(first.speeds), median(cpus) / median(first.cpus)];
    const [speedRatio, cpuRatio] = ratios.map((ratio) => `${ratio.toFixed(2)}x`);
    console.log(
      `${test.padEnd(9)}${String(sessions).padStart(2)}  ${name.padEnd(27)}${speed}  ${speedRatio}   ${cpu}  ${cpuRatio}`,
    );
  }
}

/** Keeps results under bench/results/NAME.json, with what they were measured on. */
export function writeResults(name, results) {
  mkdirSync(new URL("results/", import.meta.url), { recursive: true });
  const machine = {
    cpus: os.cpus().length,
    model: os.cpus()[0].model,
    node: process.version,
    date: new Date().toISOString(),
  };
  const text = `${JSON.stringify({ machine, results }, null, 1)}\n`;
  writeFileSync(new URL(`results/${name}.json`, import.meta.url), text);
}
