import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { PodLogOptions } from "../../../../../packages/client/src/api/pod-log-options.ts";
import { openLog, readLog } from "../../../../../src/legs/kubelet/logs/read-log.ts";
import { eventually } from "../../../../support/eventually.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-log-"));
  file = path.join(folder, "0.log");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const line = (content: string) => `2026-01-02T03:04:05.1Z stdout F ${content}\n`;

const EVERYTHING: PodLogOptions = {
  follow: false,
  previous: false,
  timestamps: false,
  since: undefined,
  tailLines: undefined,
  limitBytes: undefined,
  stream: undefined,
};

/** Reads in the background; what came, and how to end. */
async function startReading(options: Partial<PodLogOptions> = {}) {
  const abort = new AbortController();
  const log = { text: "", isOver: false, isRunning: true };
  const source = { path: file, isRunning: async () => log.isRunning };
  const parts = readLog(await openLog(file), source, { ...EVERYTHING, ...options }, abort.signal);
  const over = (async () => {
    for await (const part of parts) log.text += Buffer.from(part).toString();
    log.isOver = true;
  })();
  return { log, over, abort };
}

describe("a log that is not followed", () => {
  it("ends where the file ends", async () => {
    writeFileSync(file, line("a") + line("b"));
    const { log, over } = await startReading();
    await over;
    expect(log.text).toBe("a\nb\n");
  });

  it("may begin at its last lines and end at a limit", async () => {
    writeFileSync(file, ["a", "b", "c", "d"].map(line).join(""));
    const { log, over } = await startReading({ tailLines: 2, limitBytes: 3 });
    await over;
    expect(log.text).toBe("c\nd");
  });

  it("is read whole when it is long", async () => {
    const lines = Array.from({ length: 20_000 }, (_, index) => `line ${index} ${"x".repeat(index % 100)}`);
    writeFileSync(file, lines.map(line).join(""));
    const { log, over } = await startReading();
    await over;
    expect(log.text).toBe(`${lines.join("\n")}\n`);
  });
});

describe("a followed log", () => {
  it("gives what is written, as it is written, until its container has stopped", async () => {
    writeFileSync(file, line("a"));
    const { log, over } = await startReading({ follow: true });
    await eventually("a", () => log.text === "a\n");
    appendFileSync(file, line("b"));
    await eventually("b", () => log.text === "a\nb\n");
    appendFileSync(file, line("the last"));
    log.isRunning = false;
    await over;
    expect(log.text).toBe("a\nb\nthe last\n");
  });

  it("goes on in the new file when the old one was rotated, and loses nothing of either", async () => {
    writeFileSync(file, line("a"));
    const { log, over } = await startReading({ follow: true });
    await eventually("a", () => log.text === "a\n");
    renameSync(file, `${file}.old`);
    appendFileSync(`${file}.old`, line("still in the old one"));
    await eventually("the old one's last", () => log.text.endsWith("old one\n"));
    writeFileSync(file, line("b"));
    await eventually("b", () => log.text.endsWith("b\n"));
    log.isRunning = false;
    await over;
    expect(log.text).toBe("a\nstill in the old one\nb\n");
  });

  it("begins anew in a file that was cut short", async () => {
    writeFileSync(file, line("a".repeat(100)));
    const { log, over } = await startReading({ follow: true });
    await eventually("a", () => log.text.length === 101);
    truncateSync(file, 0);
    appendFileSync(file, line("b"));
    await eventually("b", () => log.text.endsWith("b\n"));
    log.isRunning = false;
    await over;
  });

  it("waits for no line when nobody listens any more", async () => {
    writeFileSync(file, "");
    const { over, abort, log } = await startReading({ follow: true });
    abort.abort();
    await over;
    expect(log.text).toBe("");
  });

  it("survives that its folder goes", async () => {
    const inner = path.join(folder, "pod");
    mkdirSync(inner);
    file = path.join(inner, "0.log");
    writeFileSync(file, line("a"));
    const { log, over } = await startReading({ follow: true });
    await eventually("a", () => log.text === "a\n");
    rmSync(inner, { recursive: true });
    log.isRunning = false;
    await over;
    expect(log.text).toBe("a\n");
  });
});

describe("a log that can not be read", () => {
  it("is not there", async () => {
    await expect(openLog(file)).rejects.toThrow("ENOENT");
  });

  it("is a folder", async () => {
    await expect(openLog(folder)).rejects.toThrow();
  });
});
