// Measures each kind of workload once, and selects which of the load client's figures to store.
import { lineOf, openFilesLimit } from "./processes.mjs";

const MIB = 1024 * 1024;
/** Files that a proxy needs besides the two of each session. */
const SPARE_FILES = 400;

/** The wanted number of idle sessions, or as many as the limit of open files allows a proxy. */
export const sessionsWithin = (wanted) => Math.min(wanted, Math.floor((openFilesLimit() - SPARE_FILES) / 2));

const bulkArgs = ({ direction, sessions, writeBytes, bytes }) => {
  // The upstream's port numbers encode whole MiB per session.
  const perSession = Math.max(MIB, Math.floor(bytes / sessions / MIB) * MIB);
  return [
    "-test",
    direction,
    "-n",
    String(sessions),
    "-chunk",
    String(writeBytes),
    "-bytes",
    String(perSession * sessions),
  ];
};

const once = async (lab, name, cell, args, contender) => (await lab.load(name, cell, args, contender)).result;

/** Measures in a new process that has served a few sessions before, so that its code is loaded. */
async function inFreshProcess(lab, name, cell, args) {
  const contender = await lab.fresh(name, cell.encryption);
  try {
    await once(lab, name, cell, ["-test", "setup", "-n", "30"], contender);
    return await once(lab, name, cell, args, contender);
  } finally {
    await lab.stop(contender);
  }
}

/** Each function takes (lab, contender's name, cell) and resolves with the load client's result. */
export const measure = {
  bulk: (lab, name, cell, contender) => once(lab, name, cell, bulkArgs(cell), contender),

  steady: (lab, name, cell) =>
    inFreshProcess(lab, name, cell, [
      ..."-test download -window".split(" "),
      ...[cell.window, "-n", String(cell.sessions), "-chunk", String(cell.writeBytes)],
    ]),

  echo: (lab, name, cell, contender) =>
    once(lab, name, cell, ["-test", "latency", "-rounds", String(cell.rounds)], contender),

  /**
   * Measures echoes while a separate client process downloads over other sessions as fast as it
   * can.
   */
  async "echo under load"(lab, name, cell) {
    const download = {
      direction: "download",
      sessions: cell.bulkSessions,
      writeBytes: 32 * 1024,
      bytes: 256 * 1024 * MIB,
    };
    const bulk = await lab.load(name, cell, [...bulkArgs(download), "-announce", "-timeout", "600s"]);
    bulk.result.catch(() => {});
    try {
      await lineOf(bulk.child, /(every session receives)/);
      const args = [
        "-test",
        "latency",
        "-rounds",
        String(cell.rounds),
        "-within",
        cell.within,
        "-timeout",
        "60s",
      ];
      const result = await once(lab, name, cell, args);
      if (bulk.child.exitCode !== null) throw new Error(`${name}: the load ended before the echoes did`);
      return result;
    } finally {
      bulk.child.kill("SIGKILL");
      await bulk.result.catch(() => {});
    }
  },

  setup: (lab, name, cell, contender) =>
    once(lab, name, cell, ["-test", "setup", "-n", String(cell.count), "-conc", "16"], contender),

  requests: (lab, name, cell) =>
    once(lab, name, cell, ["-test", "requests", "-n", String(cell.count), "-conc", "16"]),

  idle: (lab, name, cell) =>
    inFreshProcess(lab, name, cell, [
      "-test",
      "idle",
      "-n",
      String(cell.sessions),
      "-hold",
      cell.hold,
      "-timeout",
      "300s",
    ]),

  stalled: (lab, name, cell) =>
    inFreshProcess(lab, name, cell, ["-test", "stall", "-n", String(cell.sessions), "-hold", cell.hold]),

  "request growth": (lab, name, cell) =>
    inFreshProcess(lab, name, cell, [
      ..."-test requests -conc 16 -timeout 1800s".split(" "),
      ...["-n", String(cell.count), "-every", String(cell.every)],
    ]),
};

/**
 * The stored figures of each kind: [name in results, name in the load client's output, unit,
 * digits].
 */
export const figures = {
  bulk: [
    ["speed", "mib_per_s", "MiB/s", 0],
    ["cpu", "proxy_cpu_s_per_gib", "CPU s/GiB", 2],
    ["cpuPerWrite", "proxy_cpu_us_per_write", "CPU µs/write", 2],
  ],
  echo: [
    ["p50", "p50_us", "µs", 0],
    ["p99", "p99_us", "µs", 0],
    ["p999", "p999_us", "µs", 0],
    ["cpu", "proxy_cpu_us_each", "CPU µs", 0],
  ],
  setup: [
    ["perSecond", "per_s", "/s", 0],
    ["cpu", "proxy_cpu_ms_each", "CPU ms each", 2],
  ],
  requests: [
    ["perSecond", "per_s", "/s", 0],
    ["cpu", "proxy_cpu_us_each", "CPU µs each", 0],
  ],
  idle: [["perSession", "kib_per_session", "KiB/session", 1]],
  stalled: [["perSession", "kib_per_session", "KiB/session", 0]],
  "request growth": [["perSecond", "per_s", "/s", 0]],
};
figures["echo under load"] = figures.echo;
figures.steady = figures.bulk.slice(0, 2);
