import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import fs, {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { hostname, tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { verifyRecording } from "../../../src/recording/reading/verify-recording.ts";
import { type Disk, systemDisk } from "../../../src/recording/thread/disk.ts";
import { finishLeftParts } from "../../../src/recording/thread/finish-left-parts.ts";
import { partOf, RecordingFile } from "../../../src/recording/thread/recording-file.ts";
import { SessionWriter } from "../../../src/recording/thread/session-writer.ts";
import {
  ReserveFile,
  removeLeftLeases,
  reserveOf,
  WriterLease,
} from "../../../src/recording/thread/writer-lease.ts";
import { play } from "../../support/recording/played.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const { privateKey, publicKey } = generateKeyPairSync("ed25519");

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-left-"));
  file = path.join(folder, "2026/11/22/s.cast");
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

/** An unfinished recording of the writer `old`. */
function leave(): string {
  const part = partOf(file, "old");
  const writer = new SessionWriter(
    new RecordingFile(systemDisk, file, part),
    { facts: FACTS, maxOutputBytes: 1024 },
    privateKey,
  );
  for (let index = 0; index < 5; index++) writer.output("stdout", index * 10, Buffer.from(`line ${index}\n`));
  writer.endChunk(Date.UTC(2026, 0, 1));
  for (let index = 5; index < 9; index++) writer.output("stderr", index * 10, Buffer.from(`line ${index}\n`));
  writer.flush(100);
  return part;
}

async function look(): Promise<string[]> {
  const outcomes: string[] = [];
  await finishLeftParts(folder, "new", privateKey, (outcome) => void outcomes.push(outcome));
  return outcomes;
}

describe("a recording that its writer left", () => {
  it("is finished wherever it was cut: it verifies, and lacks no whole line", async () => {
    const whole = readFileSync(leave());
    const begins = whole.indexOf("\n", whole.indexOf("\n") + 1) + 1;
    for (let length = begins; length <= whole.byteLength; length += 7) {
      rmSync(file, { force: true });
      writeFileSync(partOf(file, "old"), whole.subarray(0, length));
      // The file's time, as a copy or a wrong clock leaves it.
      utimesSync(partOf(file, "old"), 0, 0);
      expect(await look()).toEqual(["finished"]);
      const verified = await verifyRecording(file, [publicKey]);
      expect(verified).toMatchObject({ verdict: "unchanged", head: { end: "crash" } });
      const { stdout, stderr, of } = play(readFileSync(file, "utf8"));
      const kept = whole.subarray(0, whole.lastIndexOf(10, length - 1) + 1).toString();
      const output = play(kept);
      expect([stdout, stderr]).toEqual([output.stdout, output.stderr]);
      expect(verified.head?.bytes).toBe(stdout.byteLength + stderr.byteLength);
      expect(of("m")).toEqual(["ended: crash"]);
      const intervals = kept.split("\n").map((line) => /^\[([\d.]+)/.exec(line)?.[1] ?? "0");
      const passed = intervals.reduce((sum, seconds) => sum + Number(seconds), 0);
      const { startedAt = "", endedAt = "" } = verified.head ?? {};
      expect(Date.parse(endedAt) - Date.parse(startedAt)).toBe(Math.round(passed * 1_000));
    }
  });

  it("frees its writer's lease and space, and keeps those of live and new writers", async () => {
    leave();
    const leaseOf = (writer: string): string => path.join(folder, "writers", `${writer}.json`);
    const lease = new WriterLease(folder, "living");
    writeFileSync(leaseOf("old"), JSON.stringify({ host: hostname(), pid: 2 ** 22 + 1, started: "1" }));
    writeFileSync(leaseOf("beginning"), "");
    const writers = ["old", "living", "beginning", "older"];
    for (const writer of writers) writeFileSync(path.join(folder, `reserve-${writer}`), "space");
    expect(await look()).toEqual(["finished"]);
    const isThere = (name: string): boolean => existsSync(path.join(folder, name));
    expect(writers.map((writer) => isThere(`reserve-${writer}`))).toEqual([false, true, true, false]);
    expect(writers.map((writer) => existsSync(leaseOf(writer)))).toEqual([false, true, true, false]);
    lease.end();
  });

  it("is finished, also if reserved space cannot be removed", async () => {
    leave();
    mkdirSync(path.join(folder, "reserve-a"));
    writeFileSync(path.join(folder, "reserve-b"), "space");
    const outcomes: string[] = [];
    const looking = finishLeftParts(folder, "new", privateKey, (outcome) => void outcomes.push(outcome));
    await expect(looking).rejects.toThrow("reserve-a");
    expect(outcomes).toEqual(["finished"]);
    expect(existsSync(path.join(folder, "reserve-b"))).toBe(false);
  });

  it("frees no space of a writer that starts meanwhile", () => {
    const { readdirSync } = fs;
    const leases = [new WriterLease(folder, "0")];
    // Starts another writer after each reading of a folder.
    fs.readdirSync = ((...args: Parameters<typeof readdirSync>) => {
      const names = readdirSync(...args);
      const writer = String(leases.length);
      leases.push(new WriterLease(folder, writer));
      writeFileSync(reserveOf(folder, writer), "space");
      return names;
    }) as typeof readdirSync;
    syncBuiltinESMExports();
    try {
      expect(removeLeftLeases(folder)).toBeUndefined();
    } finally {
      fs.readdirSync = readdirSync;
      syncBuiltinESMExports();
    }
    expect(leases.length).toBeGreaterThan(2);
    const isThere = leases.slice(1).map((_, index) => existsSync(reserveOf(folder, String(index + 1))));
    expect(isThere).not.toContain(false);
  });

  it("is reported once its name is on the disk, and not if syncing fails", async () => {
    for (const failure of [null, new Error("EIO")]) {
      rmSync(file, { force: true });
      const part = leave();
      const seen: string[] = [];
      const syncNames: Disk["syncNames"] = (named, done) => {
        seen.push(`names of ${named}: ${existsSync(named)} ${existsSync(partOf(file, "new"))}`);
        setImmediate(done, failure);
      };
      const finished = (outcome: string) => void seen.push(outcome);
      await finishLeftParts(folder, "new", privateKey, finished, { ...systemDisk, syncNames });
      expect(existsSync(part)).toBe(false);
      expect(seen).toEqual([`names of ${file}: true false`, ...(failure === null ? ["finished"] : [])]);
    }
  });

  it("ends with one name, also if its writer died while renaming it", async () => {
    const part = leave();
    expect(await look()).toEqual(["finished"]);
    linkSync(file, part);
    expect(await look()).toEqual(["finished"]);
    expect([existsSync(part), existsSync(partOf(file, "new"))]).toEqual([false, false]);
    expect(await verifyRecording(file, [publicKey])).toMatchObject({ verdict: "unchanged" });
    // Another recording of that name is not replaced.
    writeFileSync(file, "another");
    leave();
    expect(await look()).toEqual([]);
    expect(readFileSync(file, "utf8")).toBe("another");
  });

  it("is finished later if it could not be at once, also by the same writer", async () => {
    leave();
    writeFileSync(file, "in the way");
    expect(await look()).toEqual([]);
    rmSync(file);
    expect(await look()).toEqual(["finished"]);
    expect(await verifyRecording(file, [publicKey])).toMatchObject({ verdict: "unchanged" });
  });

  it.each([
    "write",
    "sync",
  ] as const)("is finished later by its living writer, whose %s failed", async (fault) => {
    const lease = new WriterLease(folder, "new");
    let isFull = false;
    const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    const disk: Disk = {
      ...systemDisk,
      write: (...args) => {
        if (isFull && fault === "write") throw full;
        systemDisk.write(...args);
      },
      sync: (handle, done) => (isFull ? done(full) : systemDisk.sync(handle, done)),
    };
    const part = new RecordingFile(disk, file, partOf(file, "new"));
    const writer = new SessionWriter(part, { facts: FACTS, maxOutputBytes: 1024 }, privateKey);
    writer.output("stdout", 10, Buffer.from("shown\n"));
    expect(writer.flush(10)).toBeUndefined();
    isFull = true;
    writer.end(20, Date.UTC(2026, 0, 1), "completed", 0);
    if (fault === "write") {
      expect(writer.flush(20)).toBe(full);
      part.leave("ENOSPC");
    } else {
      expect(writer.flush(20)).toBeUndefined();
      expect(await new Promise((resolve) => part.finish(resolve))).toBe(full);
    }
    isFull = false;
    expect(await look()).toEqual(["finished"]);
    lease.end();
    // After the sync failed, the recording has its own end.
    const end = fault === "write" ? "write-failed" : "completed";
    const verified = await verifyRecording(file, [publicKey]);
    expect(verified).toMatchObject({ verdict: "unchanged", head: { end } });
    const { shown, of } = play(readFileSync(file, "utf8"));
    expect(shown).toBe("shown\n");
    expect(of("m")).toEqual(fault === "write" ? ["ended: write-failed: ENOSPC"] : []);
  });

  it("whose last lines the disk refused keeps the cause while the disk refuses those of the search, too", async () => {
    const part = new RecordingFile(systemDisk, file, partOf(file, "new"));
    const writer = new SessionWriter(part, { facts: FACTS, maxOutputBytes: 1024 }, privateKey);
    writer.output("stdout", 10, Buffer.from("shown\n"));
    expect(writer.flush(10)).toBeUndefined();
    part.leave("ENOSPC");
    writeFileSync(file, "in the way");
    for (let search = 0; search < 3; search++) expect(await look()).toEqual([]);
    rmSync(file);
    expect(await look()).toEqual(["finished"]);
    expect(await verifyRecording(file, [publicKey])).toMatchObject({ head: { end: "write-failed" } });
    expect(play(readFileSync(file, "utf8")).of("m")).toEqual(["ended: write-failed: ENOSPC"]);
  });

  it("is not finished in part: a disk that takes half of its end leaves it to the next search", async () => {
    leave();
    const write: Disk["write"] = (handle, bytes, position) => {
      systemDisk.write(handle, bytes.subarray(0, bytes.byteLength / 2), position);
      throw Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    };
    const outcomes: string[] = [];
    const finished = (outcome: string) => void outcomes.push(outcome);
    await finishLeftParts(folder, "new", privateKey, finished, { ...systemDisk, write });
    expect([outcomes, existsSync(file)]).toEqual([[], false]);
    expect(await look()).toEqual(["finished"]);
    expect(await verifyRecording(file, [publicKey])).toMatchObject({ verdict: "unchanged" });
    expect(play(readFileSync(file, "utf8")).of("m")).toEqual(["ended: crash"]);
  });

  it("is set aside if it was changed meanwhile", async () => {
    const part = leave();
    writeFileSync(part, readFileSync(part, "utf8").replace("line 2", "lime 2"));
    expect(await look()).toEqual(["set-aside"]);
    expect(existsSync(file)).toBe(false);
    expect(existsSync(`${file}.changed`)).toBe(true);
  });

  it("is removed if nothing was recorded", async () => {
    leave();
    writeFileSync(partOf(file, "old"), "");
    expect(await look()).toEqual(["empty"]);
    expect(existsSync(partOf(file, "new"))).toBe(false);
  });

  it("is left alone while its writer lives, here or elsewhere", async () => {
    const part = leave();
    const lease = new WriterLease(folder, "old");
    expect(await look()).toEqual([]);
    const leaseFile = path.join(folder, "writers", "old.json");
    writeFileSync(leaseFile, JSON.stringify({ host: "another", pid: 1, started: "1" }));
    expect(await look()).toEqual([]);
    expect(existsSync(part)).toBe(true);
    const justNow = new Date(Date.now() - 4.5 * 60_000);
    utimesSync(leaseFile, justNow, justNow);
    expect(await look()).toEqual([]);
    const longAgo = new Date(Date.now() - 5.5 * 60_000);
    utimesSync(leaseFile, longAgo, longAgo);
    // Either clock may be wrong, so the writer is watched for a while.
    vi.useFakeTimers({ toFake: ["performance"] });
    expect(await look()).toEqual([]);
    vi.advanceTimersByTime(29_000);
    expect(await look()).toEqual([]);
    vi.advanceTimersByTime(1_000);
    // An unreadable lease, as without free descriptors, does not make its writer dead.
    renameSync(leaseFile, `${leaseFile}.kept`);
    symlinkSync("old.json", leaseFile);
    expect(await look()).toEqual([]);
    renameSync(`${leaseFile}.kept`, leaseFile);
    expect(await look()).toEqual(["finished"]);
    lease.end();
  });

  it.each([
    ["a day ahead", 24],
    ["an hour behind", -1],
  ])("is left alone while its writer lives elsewhere, though this host's clock jumps %s", async (_, hours) => {
    leave();
    mkdirSync(path.join(folder, "writers"));
    const leaseFile = path.join(folder, "writers", "old.json");
    writeFileSync(leaseFile, JSON.stringify({ host: "another", pid: 1, started: "1" }));
    expect(await look()).toEqual([]);
    let elsewhereMs = Date.now();
    vi.useFakeTimers({ toFake: ["performance", "Date"], now: elsewhereMs + hours * 3_600_000 });
    for (let minute = 0; minute < 7; minute++) {
      expect(await look()).toEqual([]);
      vi.advanceTimersByTime(60_000);
      elsewhereMs += 60_000;
      utimesSync(leaseFile, new Date(elsewhereMs), new Date(elsewhereMs));
    }
    // It dies, and our clock may say that this will be in an hour.
    expect(await look()).toEqual([]);
    vi.advanceTimersByTime(5 * 60_000);
    expect(await look()).toEqual(["finished"]);
  });

  it("is finished at once after the process that wrote it died", async () => {
    leave();
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
    await once(child, "spawn");
    const stat = readFileSync(`/proc/${child.pid}/stat`, "latin1");
    const started = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
    mkdirSync(path.join(folder, "writers"));
    const lease = { host: hostname(), pid: child.pid, started };
    writeFileSync(path.join(folder, "writers", "old.json"), JSON.stringify(lease));
    expect(await look()).toEqual([]);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(await look()).toEqual(["finished"]);
    expect(existsSync(path.join(folder, "writers", "old.json"))).toBe(false);
  });

  it("is finished at once by a restarted container, whose process has the pid of the dead one", async () => {
    leave();
    mkdirSync(path.join(folder, "writers"));
    const lease = { host: hostname(), pid: process.pid, started: "1" };
    writeFileSync(path.join(folder, "writers", "old.json"), JSON.stringify(lease));
    expect(await look()).toEqual(["finished"]);
  });
});

it("a reserve that can be neither taken nor freed throws no error", () => {
  const place = path.join(folder, "reserve-new");
  mkdirSync(place);
  const reserve = new ReserveFile(place);
  reserve.renew();
  reserve.release();
  expect(existsSync(place)).toBe(true);
});
