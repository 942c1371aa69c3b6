import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { AuditFile } from "../../../../src/access/audit/audit-file.ts";
import { EventQueue, EventsRefused } from "../../../../src/access/audit/event-queue.ts";

const soon = (check: () => unknown) => vi.waitFor(check, { timeout: 10_000, interval: 20 });
const event = (number: number) =>
  JSON.stringify({ kind: "Event", auditID: `id-${number}`, pad: "x".repeat(400) });
const idOf = (line: string) => (JSON.parse(line) as { auditID: string }).auditID;
const ROOMY = { maxQueuedCharacters: 1_000_000, maxBatchCharacters: 1_000_000 };

describe("an audit file", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-audit-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const fileAt = (options: object = {}, now?: () => Date) =>
    new AuditFile(
      { path: path.join(folder, "audit.log"), maxBytes: 1_000, maxAgeDays: 0, maxBackups: 0, ...options },
      now,
    );

  it("holds one line per event and is its owner's alone", async () => {
    const file = fileAt({ maxBytes: 100_000 });
    await file.append([event(1), event(2)]);
    await file.append([event(3)]);
    await file.close();
    const name = path.join(folder, "audit.log");
    const lines = readFileSync(name, "utf8").trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line).auditID)).toEqual(["id-1", "id-2", "id-3"]);
    expect(statSync(name).mode & 0o777).toBe(0o600);
  });

  it.each([
    "644",
    "640",
    "660",
  ])("of mode %s that was there before becomes its owner's alone", async (mode) => {
    const name = path.join(folder, "audit.log");
    const target = path.join(folder, "elsewhere.log");
    for (const place of [name, target]) {
      writeFileSync(place, "before\n");
      chmodSync(place, Number.parseInt(mode, 8));
    }
    const file = fileAt({ maxBytes: 100_000 });
    await file.append([event(1)]);
    await file.close();
    expect(readFileSync(name, "utf8")).toBe(`before\n${event(1)}\n`);
    expect(statSync(name).mode & 0o777).toBe(0o600);

    rmSync(name);
    symlinkSync(target, name);
    await file.append([event(2)]);
    await file.close();
    expect(statSync(target).mode & 0o777).toBe(0o600);
  });

  it("leaves the mode of a device alone", async () => {
    const before = statSync("/dev/null").mode;
    const file = fileAt({ path: "/dev/null" });
    await file.append([event(1)]);
    await file.close();
    expect(statSync("/dev/null").mode).toBe(before);
  });

  it("is renamed before it gets too long, and as many backups are kept as were asked for", async () => {
    let second = 0;
    const file = fileAt({ maxBackups: 2 }, () => new Date(Date.UTC(2026, 0, 1, 0, 0, second++)));
    for (let number = 0; number < 12; number += 1) await file.append([event(number)]);
    await file.close();
    const names = readdirSync(folder).toSorted();
    expect(names).toHaveLength(3);
    expect(names[0]).toMatch(/^audit-2026-01-01T00-00-\d\d\.000\.log$/);
    for (const name of names) expect(statSync(path.join(folder, name)).size).toBeLessThanOrEqual(1_000);
    expect(readFileSync(path.join(folder, "audit.log"), "utf8")).toContain("id-11");
  });

  it("lets old backups go, and nothing else", async () => {
    writeFileSync(path.join(folder, "audit-2020-01-01T00-00-00.000.log"), "old");
    writeFileSync(path.join(folder, "audit-notes.log"), "mine");
    const file = fileAt({ maxAgeDays: 1 }, () => new Date(Date.now() + 2 * 86_400_000));
    for (let number = 0; number < 3; number += 1) await file.append([event(number)]);
    await file.close();
    const names = readdirSync(folder);
    expect(names).not.toContain("audit-2020-01-01T00-00-00.000.log");
    expect(names).toContain("audit-notes.log");
  });

  it("stores events while an old backup cannot be deleted, and deletes the others", async () => {
    mkdirSync(path.join(folder, "audit-2020-01-01T00-00-00.000.log"));
    writeFileSync(path.join(folder, "audit-2020-01-02T00-00-00.000.log"), "old");
    const file = fileAt({ maxBackups: 1 });
    for (let number = 0; number < 6; number += 1) await file.append([event(number)]);
    await file.close();
    expect(readdirSync(folder)).not.toContain("audit-2020-01-02T00-00-00.000.log");
  });

  it("on a full disk throws, and goes on where there is room again", async () => {
    const name = path.join(folder, "audit.log");
    symlinkSync("/dev/full", name);
    const file = fileAt();
    await expect(file.append([event(1)])).rejects.toThrow("ENOSPC");
    rmSync(name);
    await file.append([event(1)]);
    await file.close();
    expect(readFileSync(name, "utf8")).toBe(`${event(1)}\n`);
  });
});

describe("a queue of events", () => {
  it("delivers again what failed, in order, once", async () => {
    const stored: string[] = [];
    let failures = 2;
    const queue = new EventQueue({
      deliver: async (events) => {
        if (failures-- > 0) throw new Error("down");
        stored.push(...events.map(idOf));
      },
      maxQueuedEvents: 10,
      maxBatchEvents: 2,
      ...ROOMY,
      maxWaitMs: 1,
      retryMs: 1,
      maxRetryMs: 2,
    });
    for (let number = 1; number <= 5; number += 1) queue.push(event(number));
    await soon(() => expect(stored).toHaveLength(5));
    expect(stored).toEqual(["id-1", "id-2", "id-3", "id-4", "id-5"]);
    expect(queue.failure).toBeUndefined();
    queue.stop();
  });

  it("is bounded: what has no room is lost and counted", async () => {
    let lost = 0;
    const queue = new EventQueue({
      deliver: () => Promise.reject(new Error("down")),
      maxQueuedEvents: 3,
      maxBatchEvents: 100,
      ...ROOMY,
      maxWaitMs: 60_000,
      retryMs: 60_000,
      maxRetryMs: 60_000,
      onLost: (count) => {
        lost += count;
      },
    });
    expect([1, 2, 3, 4, 5].map((number) => queue.push(event(number)))).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
    await expect(queue.flush()).rejects.toThrow("down");
    expect(lost).toBe(2);
    queue.stop();
    expect(lost).toBe(5);
  });

  const roomy = {
    maxQueuedEvents: 100,
    maxBatchEvents: 100,
    maxWaitMs: 60_000,
    retryMs: 1,
    maxRetryMs: 2,
    ...ROOMY,
  };

  it("is bounded by its characters too, in memory and in one delivery", async () => {
    const sizes: number[] = [];
    const deliver = async (lines: readonly string[]) => void sizes.push(lines.length);
    const length = event(1).length;
    const queue = new EventQueue({
      ...roomy,
      deliver,
      maxQueuedCharacters: length * 5,
      maxBatchCharacters: length * 2,
    });
    expect([1, 2, 3, 4, 5, 6].map((number) => queue.push(event(number)))).toEqual([
      true,
      true,
      true,
      true,
      true,
      false,
    ]);
    await queue.flush();
    expect(sizes).toEqual([2, 2, 1]);
    expect(queue.push(event(7))).toBe(true);
    queue.stop();
  });

  it("loses one event that its backend never takes, and stores all others", async () => {
    const stored: string[] = [];
    let lost = 0;
    const queue = new EventQueue({
      ...roomy,
      deliver: async (lines) => {
        if (lines.some((line) => idOf(line) === "id-3")) throw new EventsRefused("413");
        stored.push(...lines.map(idOf));
      },
      onLost: (count) => {
        lost += count;
      },
    });
    for (let number = 1; number <= 7; number += 1) queue.push(event(number));
    await soon(async () => {
      await queue.flush().catch(() => {});
      expect(stored).toEqual(["id-1", "id-2", "id-4", "id-5", "id-6", "id-7"]);
    });
    expect(lost).toBe(1);
    queue.push(event(3));
    await expect(queue.flush()).rejects.toThrow("413");
    expect(queue.failure?.message).toBe("413");
    queue.stop();
  });
});
