// The project's performance targets ("bars"), compared with the measurements. Each bar names its
// cell, so figures of another cell cannot meet it.
import { figureOf } from "./results.mjs";

const bulk = (plan, encryption, direction, sessions, writes = "32 KiB") =>
  `bulk/${plan}/${encryption}/${direction}/${sessions} ${sessions === 1 ? "session" : "sessions"}/${writes}`;

/** The first contender's figure divided by the second's, in the same cell. */
const ratio = (cell, figure, first, second) => ({
  unit: "x",
  measure: (cells) => figureOf(cells[cell], first, figure) / figureOf(cells[cell], second, figure),
});
const speed = (cell, first, second) => ratio(cell, "speed", first, second);
const cpu = (cell, first, second) => ratio(cell, "cpu", first, second);
const atLeast = (least) => ({ text: `>= ${least}`, isMet: (value) => value >= least });
const atMost = (most) => ({ text: `<= ${most}`, isMet: (value) => value <= most });

const bars = [];
const bar = (workload, what, how, limit) => bars.push([{ workload, what, ...how, limit }]);
/** A bar that is met if either of two conditions is. */
const eitherOf = (workload, ...two) =>
  bars.push(two.map(([what, how, limit]) => ({ workload, what, ...how, limit })));

const REFERENCE = "of Kubernetes'";
const PIPE = "of the pipe";
for (const [direction, sessions, speedLeast, cpuMost, pipeMost] of [
  ["download", 1, 1.8, 0.4, 1.1],
  ["download", 8, 1.35, 0.5, 1.1],
  ["upload", 1, 3.5, 0.22, 1.4],
  ["upload", 8, 2, 0.32, 1.4],
]) {
  const cell = bulk("translate", "plain", direction, sessions);
  const workload = `translate ${direction}, plain, ${sessions}`;
  bar(workload, `throughput ${REFERENCE}`, speed(cell, "sluice", "kubernetes"), atLeast(speedLeast));
  bar(workload, `CPU per GiB ${REFERENCE}`, cpu(cell, "sluice", "kubernetes"), atMost(cpuMost));
  bar(workload, `CPU per GiB ${PIPE}`, cpu(cell, "sluice", "pipe"), atMost(pipeMost));
}
for (const [direction, speedLeast, cpuMost] of [
  ["download", 2, 0.33],
  ["upload", 4, 0.18],
]) {
  const cell = bulk("translate", "plain", direction, 1);
  const workload = `translate ${direction}, plain, 1, Node 24`;
  bar(workload, `throughput ${REFERENCE}`, speed(cell, "sluice@node", "kubernetes"), atLeast(speedLeast));
  bar(workload, `CPU per GiB ${REFERENCE}`, cpu(cell, "sluice@node", "kubernetes"), atMost(cpuMost));
}
// With TLS on both legs, as with real kubelets. A missing number means that there is no bar.
for (const [plan, direction, sessions, cpuMost, speedLeast] of [
  ["translate", "download", 1, 0.5, 1.6],
  ["translate", "upload", 1, 0.3, 2.8],
  ["translate", "download", 8, 0.7],
  ["translate", "upload", 8, 0.4],
  ["pass-through", "download", 1, 1],
  ["pass-through", "upload", 1, 0.95],
  ["pass-through", "download", 8, 1, 0.95],
  ["pass-through", "upload", 8, 1, 0.95],
  ["WebSocket v5 pass-through", "download", 1, 1],
  ["WebSocket v5 pass-through", "upload", 1, 1],
  ["WebSocket v5 pass-through", "download", 8, 1],
  ["WebSocket v5 pass-through", "upload", 8, 1],
  ["tunnel", "download", 1, 0.8],
  ["tunnel", "upload", 1, 0.95],
  ["tunnel", "download", 8, 0.95],
  ["tunnel", "upload", 8, 0.95],
]) {
  const cell = bulk(plan, "TLS", direction, sessions);
  const workload = `${plan} ${direction}, TLS, ${sessions}, Node 24`;
  bar(workload, `CPU per GiB ${REFERENCE}`, cpu(cell, "sluice@node", "kubernetes"), atMost(cpuMost));
  if (speedLeast !== undefined)
    bar(workload, `throughput ${REFERENCE}`, speed(cell, "sluice@node", "kubernetes"), atLeast(speedLeast));
}
for (const [direction, most] of [
  ["download", 1.1],
  ["upload", 0.5],
]) {
  const cell = bulk("translate", "TLS", direction, 1);
  const workload = `translate ${direction}, TLS, 1, Node 20`;
  bar(workload, `CPU per GiB ${REFERENCE}`, cpu(cell, "sluice", "kubernetes"), atMost(most));
}
for (const direction of ["download", "upload"]) {
  for (const sessions of [1, 8]) {
    const plain = bulk("tunnel", "plain", direction, sessions);
    const workload = `tunnel ${direction}, plain, ${sessions}`;
    bar(workload, `CPU per GiB ${PIPE}`, cpu(plain, "sluice", "pipe"), atMost(1.25));
  }
}
for (const plan of ["bridge", "bridged port-forward"]) {
  for (const [direction, most] of [
    ["download", 1.25],
    ["upload", 1.4],
  ]) {
    const cell = bulk(plan, "plain", direction, 1);
    bar(`${plan} ${direction}, plain, 1`, `CPU per GiB ${PIPE}`, cpu(cell, "sluice", "pipe"), atMost(most));
  }
}
for (const encryption of ["plain", "TLS"]) {
  const cell = `stalled readers/translate/${encryption}/100 sessions`;
  const held = { unit: " KiB", measure: (cells) => figureOf(cells[cell], "sluice", "perSession") };
  bar(`stalled reader, ${encryption}`, "held per session", held, atMost(256));
}
for (const direction of ["download", "upload"]) {
  for (const sessions of [1, 8]) {
    const cell = bulk("pass-through", "plain", direction, sessions);
    bar(
      `pass-through ${direction}, ${sessions}`,
      `throughput ${PIPE}`,
      speed(cell, "sluice", "pipe"),
      atLeast(0.95),
    );
  }
}
const echo = "echo/translate/plain";
bar("echo, idle gateway", `p50 ${PIPE}`, ratio(echo, "p50", "sluice", "pipe"), atMost(1.05));
bar("echo, idle gateway", `p99 ${PIPE}`, ratio(echo, "p99", "sluice", "pipe"), atMost(1.05));
bar("echo, idle gateway", `p99 ${REFERENCE}`, ratio(echo, "p99", "sluice", "kubernetes"), atMost(1));
const loaded = "echo under load/translate/plain/8 bulk sessions";
eitherOf(
  "echo while 8 bulk sessions run",
  [
    "p99 of the idle gateway's",
    {
      unit: "x",
      measure: (cells) => figureOf(cells[loaded], "sluice", "p99") / figureOf(cells[echo], "sluice", "p99"),
    },
    atMost(2),
  ],
  [`or p99 ${REFERENCE}, as loaded`, ratio(loaded, "p99", "sluice", "kubernetes"), atMost(1)],
);
bar(
  "set-ups per second, exec, plain",
  REFERENCE,
  ratio("set-ups/translate/plain", "perSecond", "sluice", "kubernetes"),
  atLeast(1.15),
);
const traced = ratio("set-ups/translate/plain/traced", "perSecond", "sluice-traced", "sluice");
bar("set-ups per second, exec, 10 % traced", "of those without traces", traced, atLeast(0.97));
for (const plan of ["translate", "pass-through"]) {
  const cell = `set-ups/${plan}/TLS`;
  const workload = `set-ups, ${plan}, TLS, Node 24`;
  for (const [reference, name] of [
    [REFERENCE, "kubernetes"],
    [PIPE, "pipe@node"],
  ]) {
    bar(workload, `rate ${reference}`, ratio(cell, "perSecond", "sluice@node", name), atLeast(1));
    bar(workload, `CPU ${reference}`, ratio(cell, "cpu", "sluice@node", name), atMost(1));
  }
}
for (const [encryption, name, most] of [
  ["plain", "sluice", 24],
  ["TLS", "sluice", 80],
  ["TLS", "sluice@node", 80],
]) {
  const cell = `idle memory/translate/${encryption}/1,000 sessions`;
  const held = { unit: " KiB", measure: (cells) => figureOf(cells[cell], name, "perSession") };
  const workload = `idle translated session, ${encryption}${name === "sluice" ? "" : ", Node 24"}`;
  bar(workload, "resident memory", held, atMost(most));
  bar(
    workload,
    `resident memory ${PIPE}`,
    ratio(cell, "perSession", name, name.replace("sluice", "pipe")),
    atMost(1),
  );
}
const many = bulk("translate", "plain", "download", 64);
eitherOf(
  "two workers, 64 sessions",
  ["throughput of one worker", speed(many, "sluice-2", "sluice"), atLeast(1.6)],
  ["or CPU per GiB of one worker", cpu(many, "sluice-2", "sluice"), atMost(1.1)],
);
for (const direction of ["download", "upload"]) {
  const cell = bulk("translate", "plain", direction, 1, "64 B");
  bar(
    `64 B writes, ${direction}`,
    `CPU per write ${REFERENCE}`,
    ratio(cell, "cpuPerWrite", "sluice", "kubernetes"),
    atMost(0.5),
  );
}
const growth = (key) => ({
  unit: "x",
  measure: (cells) => {
    const points = cells["request growth/tunnel/plain"]?.contenders[0].points;
    return points === undefined ? Number.NaN : points.at(-1)[key] / points[0][key];
  },
});
// Garbage collection varies resident memory by a few per cent. A leak of 32 bytes per request would
// raise it by half.
bar(
  "1,000,000 port-forward requests",
  "memory at the end of that after 50,000",
  growth("rss_kib"),
  atMost(1.1),
);
bar(
  "1,000,000 port-forward requests",
  "open files at the end of those after 50,000",
  growth("files"),
  atMost(1),
);
bar(
  "1,000,000 port-forward requests",
  "sockets at the end of those after 50,000",
  growth("sockets"),
  atMost(1),
);

/**
 * Returns rows of [workload, what, measured, bar, verdict], and how many of the measured bars are
 * met.
 */
export function barRows(cells) {
  const judged = bars.map((rows) => {
    const values = rows.map(({ measure }) => measure(cells));
    const isMet = rows.map(({ limit }, index) => limit.isMet(values[index]));
    return { rows, values, isMet, isKnown: values.some(Number.isFinite) };
  });
  return {
    met: judged.filter(({ isMet }) => isMet.includes(true)).length,
    measured: judged.filter(({ isKnown }) => isKnown).length,
    rows: judged.flatMap(({ rows, values, isMet }) =>
      rows.map(({ workload, what, unit, limit }, index) => {
        const value = values[index];
        if (!Number.isFinite(value)) return [workload, what, "not measured", limit.text + unit, ""];
        const verdict = isMet[index] ? "met" : isMet.includes(true) ? "the other is" : "**not met**";
        return [workload, what, `${value.toFixed(unit === "x" ? 2 : 0)}${unit}`, limit.text + unit, verdict];
      }),
    ),
  };
}
