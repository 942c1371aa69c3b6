// Draws the charts of docs/evidence/performance.md as SVG, without a browser.
import * as echarts from "echarts";
import { median } from "./results.mjs";

const COLOURS = ["#9aa5b1", "#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#1971c2", "#868e96"];

function svg(option, height = 340) {
  const chart = echarts.init(null, null, { renderer: "svg", ssr: true, width: 920, height });
  chart.setOption({
    animation: false,
    backgroundColor: "#ffffff",
    color: COLOURS,
    legend: { bottom: 0 },
    grid: { left: 70, right: 24, top: 48, bottom: 64 },
    ...option,
  });
  const text = chart.renderToSVGString();
  chart.dispose();
  return text;
}

/**
 * Draws one figure as bars: a group for each cell, a bar for each contender. A contender that is
 * missing from a cell leaves a gap.
 */
function bars(title, cells, labelOf, figure, axis) {
  const names = new Map(
    cells.flatMap(({ contenders }) => contenders.map(({ name, title: text }) => [name, text])),
  );
  names.delete("direct");
  return svg({
    title: { text: title, textStyle: { fontSize: 15 } },
    xAxis: { type: "category", data: cells.map(labelOf) },
    yAxis: { type: "value", name: axis },
    series: Array.from(names, ([name, text]) => ({
      type: "bar",
      name: text,
      barMaxWidth: 26,
      data: cells.map(({ contenders }) => {
        const samples = contenders.find((contender) => contender.name === name)?.figures[figure];
        return samples === undefined ? null : Number(median(samples).toPrecision(3));
      }),
    })),
  });
}

const bulkLabel = ({ direction, sessions }) => `${direction}, ${sessions}`;

/** [file name, SVG] of every chart that has cells. */
export function charts(cells) {
  const drawn = [];
  for (const plan of ["translate", "tunnel", "pass-through"]) {
    for (const encryption of ["plain", "TLS"]) {
      const some = cells.filter(
        (cell) =>
          cell.kind === "bulk" &&
          cell.plan === plan &&
          cell.encryption === encryption &&
          cell.writeBytes !== 64,
      );
      if (some.length === 0) continue;
      const title = `${plan}, ${encryption}, 32 KiB writes, by direction and sessions`;
      const file = `${plan}-${encryption}`.toLowerCase();
      drawn.push([`${file}-cpu.svg`, bars(`CPU: ${title}`, some, bulkLabel, "cpu", "CPU s/GiB")]);
      drawn.push([`${file}-throughput.svg`, bars(`Throughput: ${title}`, some, bulkLabel, "speed", "MiB/s")]);
    }
  }
  for (const kind of ["echo", "echo under load"]) {
    const some = cells.filter((cell) => cell.kind === kind);
    if (some.length === 0) continue;
    const label = ({ plan, encryption }) => `${plan}, ${encryption}`;
    drawn.push([
      `${kind.replaceAll(" ", "-")}-p99.svg`,
      bars(`${kind}: p99 of one byte there and back`, some, label, "p99", "µs"),
    ]);
  }
  const memory = cells.filter(({ kind }) => kind === "idle" || kind === "stalled");
  if (memory.length > 0) {
    const label = ({ kind, encryption, sessions }) => `${sessions} ${kind}, ${encryption}`;
    drawn.push([
      "memory.svg",
      bars("Resident memory per translated session", memory, label, "perSession", "KiB"),
    ]);
  }
  const growth = cells.find(({ kind }) => kind === "request growth");
  if (growth !== undefined) drawn.push(["request-growth.svg", growthChart(growth.contenders[0].points)]);
  return drawn;
}

/** Draws lines on two logarithmic axes, on which a power of the count is a straight line. */
export function powerChart(title, unit, countName, lines) {
  return svg({
    title: { text: title, textStyle: { fontSize: 15 } },
    xAxis: { type: "log", logBase: 2, name: countName },
    yAxis: { type: "log", name: unit, min: "dataMin", max: "dataMax" },
    series: lines.map(({ name, points }) => ({ type: "line", name, data: points })),
  });
}

function growthChart(points) {
  const line = (name, key, divisor, yAxisIndex) => ({
    ...{ type: "line", name, yAxisIndex, showSymbol: false },
    data: points.map((point) => [point.requests, point[key] / divisor]),
  });
  return svg({
    title: { text: "Port-forward requests over one connection", textStyle: { fontSize: 15 } },
    xAxis: { type: "value", name: "requests" },
    yAxis: [
      { type: "value", name: "MiB", min: 0 },
      { type: "value", name: "open files", min: 0 },
    ],
    series: [
      line("resident memory", "rss_kib", 1024, 0),
      line("open files", "files", 1, 1),
      line("sockets", "sockets", 1, 1),
    ],
  });
}
