import { fork } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Worker, WorkerPool } from "../../../src/app/runtime/worker-pool.ts";
import { createLogger } from "../../../src/observability/logger.ts";

/** Answers what it is called by its first argument: `good` everything, `stubborn` no shutDown, `broken` with a problem, `garbled` with two, `mortal` dies. */
const PROGRAM = `
  const kind = process.argv[2];
  process.on("message", ({ id, name }) => {
    const answer = (more) => process.send({ type: "answer", id, ...more });
    if (name === "start" && kind === "broken") answer({ problem: "tokens.csv: ENOENT" });
    else if (name === "start" && kind === "garbled") answer({ problem: "a.yaml:1:2: bad\\na.yaml:3:4: worse" });
    else if (name === "start" && kind === "mortal") process.exit(3);
    else if (name === "start") answer({});
    else if (name === "shutDown" && kind !== "stubborn") process.disconnect();
  });
`;

let folder: string;
let pool: WorkerPool | undefined;
const ready: Worker[] = [];
const gone: { worker: Worker; isExpected: boolean }[] = [];
const logLines: string[] = [];

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-pool-"));
  writeFileSync(path.join(folder, "worker.cjs"), PROGRAM);
  ready.length = gone.length = logLines.length = 0;
});
afterEach(async () => {
  await pool?.shutDown();
  rmSync(folder, { recursive: true });
});

/** Processes of these kinds, in the order in which they are started; further ones are good. */
function poolOf(kinds: readonly string[], count = kinds.length): WorkerPool {
  const wanted = [...kinds];
  const start = {
    configurationText: "",
    configurationFile: "",
    flags: {},
    ticketKeys: "",
    replicaId: "00000000",
    isFirst: true,
    workers: count,
    adminSocket: "",
  };
  pool = new WorkerPool({
    count,
    fork: () => fork(path.join(folder, "worker.cjs"), [wanted.shift() ?? "good"], { execArgv: [] }),
    startOf: () => start,
    handlersFor: () => ({
      listen: (where) => where,
      report: () => {},
      endSession: () => "unknown",
      received: () => {},
      wantsFiles: () => false,
      keepFiles: () => {},
      recallFiles: () => undefined,
      takePlace: () => ({ place: 1 }),
      giveBack: () => {},
      sessionBegan: () => {},
      sessionOver: () => {},
      audit: () => {},
      sessionOutput: () => "unknown" as const,
      typeInSession: () => "unknown" as const,
      sessionFacts: () => undefined,
      replicaSessions: () => ({ sessions: [], partial: [] }),
      found: () => {},
    }),
    shutdownGracePeriodMs: 0,
    // A good one ends by itself within that, on a busy machine, too.
    killAfterMs: kinds.includes("stubborn") ? 1_000 : 10_000,
    logger: createLogger({ level: "info", destination: { write: (line) => void logLines.push(line) } }),
    onReady: (worker) => void ready.push(worker),
    onGone: (worker, isExpected) => void gone.push({ worker, isExpected }),
  });
  return pool;
}

describe("a pool of workers", () => {
  it("is started when all serve, and stopped when all are gone", async () => {
    const workers = poolOf(["good", "good"]);
    await workers.start();
    expect(workers.workers.map(({ isTaking }) => isTaking)).toEqual([true, true]);
    await workers.shutDown();
    expect(gone.map(({ isExpected }) => isExpected)).toEqual([true, true]);
    expect(ready.map(({ process: child }) => child.exitCode)).toEqual([0, 0]);
  });

  it("says why one can not start, and leaves none behind", async () => {
    const workers = poolOf(["good", "broken"]);
    await expect(workers.start()).rejects.toThrow("tokens.csv: ENOENT");
    expect(workers.workers).toEqual([]);
  });

  it("replaces who dies, also when the replacement dies at its start", async () => {
    const workers = poolOf(["good", "good", "mortal", "good"], 2);
    await workers.start();
    const [first] = ready;
    first?.process.kill("SIGKILL");
    await expect.poll(() => ready.length).toBe(3);
    expect(ready[2]?.index).toBe(first?.index);
    expect(workers.workers.every(({ isTaking }) => isTaking)).toBe(true);
    expect(gone.map(({ isExpected }) => isExpected)).toEqual([false, false]);
    expect(logLines.filter((line) => line.includes("will be replaced")).length).toBe(2);
  });

  it("logs a replacement's problem once, on one line, until it is another one", async () => {
    const workers = poolOf(["good", "garbled", "garbled", "broken", "good"], 1);
    await workers.start();
    ready[0]?.process.kill("SIGKILL");
    await expect.poll(() => ready.length).toBe(2);
    const problems = logLines
      .map((line) => JSON.parse(line))
      .filter(({ msg }) => msg === "a worker could not start");
    expect(problems.map(({ problem }) => problem)).toEqual([
      "a.yaml:1:2: bad (and 1 more)",
      "tokens.csv: ENOENT",
    ]);
  });

  it("one that does not end is killed", async () => {
    const workers = poolOf(["good", "stubborn"]);
    await workers.start();
    await workers.shutDown();
    expect(ready.filter(({ process: child }) => child.signalCode === "SIGKILL").length).toBe(1);
  });
});
