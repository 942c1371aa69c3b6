import { spawnSync } from "node:child_process";
import fs, {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { execPath, Target, WebSocketExecutor } from "../../../packages/client/src/index.ts";
import { applyRetention } from "../../../src/recording/storage/apply-retention.ts";
import { isFirstWriter, WriterLease } from "../../../src/recording/thread/writer-lease.ts";
import { eventually } from "../../support/eventually.ts";
import { runWebNode } from "../../support/fake-nodes.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { GatewayFiles, TESTER_TOKEN, webOn } from "../../support/gateway-files.ts";
import { filesIn } from "../../support/recording/recorded-gateway.ts";
import { serveGateway } from "../../support/served-gateway.ts";

const MAX_DELETED_AT_ONCE = fixedBound("src/recording/storage/apply-retention.ts", "MAX_DELETED_AT_ONCE");

const DAY_MS = 24 * 60 * 60_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-retention-"));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

/** Writes a file of 1,000 bytes whose session ended this many days ago. */
function leave(name: string, ageDays: number, into = folder): string {
  const file = path.join(into, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `${"x".repeat(994)}\nhead\n`);
  const at = new Date(Date.now() - ageDays * DAY_MS);
  utimesSync(file, at, at);
  return file;
}

const deletedLines = (from: string): { file: string; reason: string; head: string }[] =>
  readFileSync(path.join(from, "deleted.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("retention", () => {
  it("deletes recordings that are too old, and lists them", async () => {
    const old = leave("2026/01/01/old.cast", 100);
    const young = leave("2026/04/10/young.cast", 89);
    const running = leave("2026/01/01/running.cast.writer.part", 100);
    const changed = leave("2026/01/01/changed.cast.changed", 100);
    const alone = leave("2025/12/31/alone.cast", 101);
    expect(await applyRetention(folder, { maxAgeMs: 90 * DAY_MS, maxTotalBytes: 0 })).toMatchObject({
      age: 2,
      size: 0,
    });
    expect([old, alone, young, running, changed].map((file) => existsSync(file))).toEqual([
      false,
      false,
      true,
      true,
      true,
    ]);
    expect(deletedLines(folder)).toMatchObject([
      { file: "2025/12/31/alone.cast", reason: "age", head: "head" },
      { file: "2026/01/01/old.cast", reason: "age", head: "head" },
    ]);
    expect(existsSync(path.join(folder, "2025"))).toBe(false);
  });

  it("deletes on a full disk, too: frees space for its list, and leaves none out", async () => {
    for (const age of [1, 2]) leave(`2026/01/0${age}/${age}.cast`, age);
    const list = path.join(folder, "deleted.jsonl");
    writeFileSync(list, '{"file":"a line that was cu');
    const { open } = fs.promises;
    let isFull = true;
    fs.promises.open = async (...args: Parameters<typeof open>) => {
      if (isFull && args[0] === list)
        throw Object.assign(new Error("no space"), { code: "ENOSPC", syscall: "write" });
      return await open(...args);
    };
    syncBuiltinESMExports();
    try {
      const bounds = { maxAgeMs: 0, maxTotalBytes: 1_000 };
      expect(await applyRetention(folder, bounds)).toMatchObject({ size: 0, problem: expect.any(String) });
      const makeRoom = (): void => {
        isFull = false;
      };
      expect(await applyRetention(folder, bounds, makeRoom)).toEqual({ age: 0, size: 1, uploaded: 0 });
    } finally {
      fs.promises.open = open;
      syncBuiltinESMExports();
    }
    const [, line = ""] = readFileSync(list, "utf8").split("\n");
    expect(JSON.parse(line)).toMatchObject({ file: "2026/01/02/2.cast", head: "head" });
  });

  it("deletes the oldest past the size, and no more", async () => {
    for (const age of [3, 1, 2]) leave(`2026/01/0${age}/${age}.cast`, age);
    const bounds = { maxAgeMs: 0, maxTotalBytes: 2_000 };
    expect(await applyRetention(folder, bounds)).toMatchObject({ age: 0, size: 1 });
    expect(
      filesIn(folder, ".cast")
        .map((file) => path.basename(file))
        .sort(),
    ).toEqual(["1.cast", "2.cast"]);
    expect(deletedLines(folder)).toMatchObject([{ reason: "size", file: "2026/01/03/3.cast" }]);
    expect(await applyRetention(folder, bounds)).toMatchObject({ age: 0, size: 0 });
  });

  it("deletes the others if some cannot be deleted, which it tries again later", async () => {
    const held = leave("2026/01/01/held.cast", 102);
    mkdirSync(`${held}.uploaded`);
    const endless = leave("2026/01/01/endless.cast", 101);
    writeFileSync(endless, Buffer.alloc(17 * 1024 * 1024, "x"));
    utimesSync(endless, new Date(0), new Date(0));
    const old = leave("2026/01/02/old.cast", 100);
    const bounds = { maxAgeMs: 90 * DAY_MS, maxTotalBytes: 0 };
    const { age, problem } = await applyRetention(folder, bounds);
    expect([age, problem]).toEqual([1, expect.stringContaining("endless.cast has a line that is too long")]);
    expect([held, endless, old].map((file) => existsSync(file))).toEqual([true, true, false]);
    const lines = deletedLines(folder).length;
    expect(await applyRetention(folder, bounds)).toEqual({ age: 0, size: 0, uploaded: 0 });
    expect(deletedLines(folder)).toHaveLength(lines);
  });

  it("deletes beside a folder that cannot be read", async () => {
    const old = leave("2026/01/02/old.cast", 100);
    // Deeper than a path may be long. Permissions would not stop a test that root runs.
    const deep = `cd "$0" && for i in $(seq 25); do mkdir ${"n".repeat(200)} && cd ${"n".repeat(200)}; done`;
    spawnSync("sh", ["-c", deep, folder]);
    const bounds = { maxAgeMs: 90 * DAY_MS, maxTotalBytes: 0 };
    const round = applyRetention(folder, bounds).finally(() =>
      // Node's own removal cannot reach such a folder.
      spawnSync("sh", ["-c", "rm -rf n*"], { cwd: folder }),
    );
    expect((await round).age).toBe(1);
    expect(existsSync(old)).toBe(false);
  });

  it("keeps recordings of a newer format, and deletes others", async () => {
    const newer = leave("2026/01/01/newer.cast", 100);
    writeFileSync(newer, `${JSON.stringify({ version: 3, sluice: { format: 2 } })}\n`);
    utimesSync(newer, new Date(0), new Date(0));
    const old = leave("2026/01/02/old.cast", 99);
    const bounds = { maxAgeMs: 90 * DAY_MS, maxTotalBytes: 1 };
    expect(await applyRetention(folder, bounds)).toMatchObject({ age: 1, size: 0 });
    expect([newer, old].map((file) => existsSync(file))).toEqual([true, false]);
  });

  it("deletes only uploaded recordings, a while after the upload", async () => {
    const [waiting, uploaded, fresh] = ["waiting", "uploaded", "fresh"].map((name) =>
      leave(`2026/01/01/${name}.cast`, 100),
    );
    const marks = [uploaded, fresh].map((file) => `${file}.uploaded`);
    for (const mark of marks) writeFileSync(mark, "{}");
    utimesSync(marks[0] ?? "", new Date(0), new Date(0));
    const bounds = { maxAgeMs: 0, maxTotalBytes: 0, keepUploadedMs: DAY_MS };
    expect(await applyRetention(folder, bounds)).toEqual({ age: 0, size: 0, uploaded: 1 });
    expect([waiting, uploaded, marks[0], fresh].map((file) => existsSync(file ?? ""))).toEqual([
      true,
      false,
      false,
      true,
    ]);
    expect(deletedLines(folder)).toMatchObject([{ reason: "uploaded" }]);
    expect(await applyRetention(folder, { ...bounds, maxAgeMs: DAY_MS, maxTotalBytes: 1 })).toMatchObject({
      age: 1,
    });
    expect(existsSync(waiting ?? "")).toBe(true);
  });

  it("deletes no running recording after the clock jumps", async () => {
    const part = leave("2026/01/01/running.cast.writer.part", 0);
    const ended = leave("2026/01/01/ended.cast", 0);
    const bounds = { maxAgeMs: DAY_MS / 2, maxTotalBytes: 0 };
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000 });
    expect((await applyRetention(folder, bounds)).age).toBe(0);
    for (const hours of [11, 11]) {
      vi.setSystemTime(Date.now() + hours * 3_600_000);
      await applyRetention(folder, bounds);
    }
    expect(existsSync(ended)).toBe(false);
    vi.setSystemTime(Date.now() + 3 * DAY_MS);
    await applyRetention(folder, bounds);
    expect([existsSync(ended), existsSync(part)]).toEqual([false, true]);
  });

  it("deletes nothing by age for a while after the clock jumps forward, and nothing once it is set back", async () => {
    const files = ["one", "two"].map((name) => leave(`2026/01/01/${name}.cast`, 1));
    const rest = () => files.filter((file) => existsSync(file)).length;
    const bounds = { maxAgeMs: 90 * DAY_MS, maxTotalBytes: 0 };
    const startMs = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: startMs });
    const roundAfter = async (ms: number) => {
      vi.setSystemTime(Date.now() + ms);
      return await applyRetention(folder, bounds);
    };
    expect(await roundAfter(0)).toEqual({ age: 0, size: 0, uploaded: 0 });
    // Found also by a start long after the last round, which may be right.
    const { age, problem } = await roundAfter(3_650 * DAY_MS);
    expect([age, problem]).toEqual([0, expect.stringMatching(/^the clock went from 20.*for 1440 minutes$/)]);
    expect(await roundAfter(60_000)).toEqual({ age: 0, size: 0, uploaded: 0 });
    // Room is still made.
    expect(await applyRetention(folder, { ...bounds, maxTotalBytes: 1_500 })).toMatchObject({ size: 1 });
    await roundAfter(-3_650 * DAY_MS);
    expect(await roundAfter(DAY_MS)).toEqual({ age: 0, size: 0, uploaded: 0 });
    // A clock that stays there for a day is believed.
    await roundAfter(3_650 * DAY_MS);
    expect([(await roundAfter(DAY_MS / 2)).age, rest()]).toEqual([0, 1]);
    expect([(await roundAfter(DAY_MS / 2)).age, rest()]).toEqual([1, 0]);
  });

  it("keeps everything without bounds, and deletes up to a number in a round", async () => {
    for (let index = 0; index < MAX_DELETED_AT_ONCE + 5; index++) leave(`2026/01/01/${index}.cast`, 10);
    expect(await applyRetention(folder, { maxAgeMs: 0, maxTotalBytes: 0 })).toMatchObject({
      age: 0,
      size: 0,
    });
    const bounds = { maxAgeMs: DAY_MS, maxTotalBytes: 0 };
    expect((await applyRetention(folder, bounds)).age).toBe(MAX_DELETED_AT_ONCE);
    expect((await applyRetention(folder, bounds)).age).toBe(5);
  });

  it("is done by one of several writers", () => {
    const leases = ["b", "a", "c"].map((writer) => new WriterLease(folder, writer));
    expect(["a", "b", "c"].map((writer) => isFirstWriter(folder, writer))).toEqual([true, false, false]);
    leases[1]?.end();
    expect(["b", "c"].map((writer) => isFirstWriter(folder, writer))).toEqual([true, false]);
    for (const lease of leases) lease.end();
  });
});

it("SIGHUP applies new rules and bounds, or keeps the old ones if a key is missing", async () => {
  const node = await runWebNode();
  const files = new GatewayFiles();
  const recordings = path.join(files.folder, "recordings");
  const configure = (more: object): void =>
    files.configure({
      ...webOn(node.port),
      configuration: {
        recording: { folder: recordings, minFreeBytes: 0, rules: [{ name: "all" }], ...more },
      },
    });
  configure({});
  const old = leave("2026/01/01/old.cast", 50, recordings);
  const gateway = await serveGateway(files.configurationFile);
  try {
    const target = new Target({
      url: gateway.ready.apiServerUrl,
      headers: () => [["Authorization", `Bearer ${TESTER_TOKEN}`]],
    });
    const run = async () => {
      const at = execPath({ namespace: "default", pod: "web", container: "main" }, ["echo", "hello"]);
      await new WebSocketExecutor(target, at).stream({ stdout: { takePart: () => undefined } });
    };
    await run();
    await eventually("the first is recorded", () => filesIn(recordings, ".cast").length === 2);
    configure({ maxAge: "24h", rules: [{ name: "all", record: "none" }] });
    gateway.child.kill("SIGHUP");
    await eventually("what is too old now is deleted", () => !existsSync(old));
    await run();
    expect(filesIn(recordings, ".part")).toEqual([]);
    expect(filesIn(recordings, ".cast")).toHaveLength(1);
    expect(deletedLines(recordings)).toMatchObject([{ reason: "age" }]);
  } finally {
    await gateway.stop();
    await node.close();
    files.remove();
  }
});
