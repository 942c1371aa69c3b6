import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { Recorder } from "../../../src/recording/thread/recorder.ts";

/** A thread that opens files and answers nothing else, as if its disk hung. */
const HANGING = new URL(
  `data:text/javascript,${encodeURIComponent(
    'import { parentPort } from "node:worker_threads"; parentPort.on("message", ({ kind, handle }) => { if (kind === "open") parentPort.postMessage({ kind: "opened", handle }); if (kind === "stop") parentPort.close(); });',
  )}`,
);
/** A thread that takes every slab of session 1, one at a time. */
const TAKING = new URL(
  `data:text/javascript,${encodeURIComponent(
    'import { parentPort } from "node:worker_threads"; parentPort.on("message", ({ kind, handle, buffer, used }) => { if (kind === "open") parentPort.postMessage({ kind: "opened", handle }); if (kind === "stop") parentPort.close(); if (kind !== "slab") return; let bytes = 0; const view = new DataView(buffer); for (let at = 0; at < used; ) { const length = view.getUint32(at + 16); bytes += length; at += 20 + length; } parentPort.postMessage({ kind: "taken", slabs: 1, buffers: [], bytes: [[1, bytes]] }); });',
  )}`,
);
const MIB = 1024 * 1024;

let recorder: Recorder | undefined;
afterEach(async () => recorder?.stop());

function start(program: URL = HANGING, folder = "", onLeftProblem = (_: string): void => {}): Recorder {
  recorder = new Recorder({
    folder,
    onLeftProblem,
    writer: "w",
    signingKey: "",
    maxQueuedBytesPerSession: MIB,
    maxQueuedBytes: 2 * MIB,
    onProblem: () => {},
    onLeft: () => {},
    onDeleted: () => {},
    retention: { maxAgeMs: 0, maxTotalBytes: 0 },
    program,
  });
  return recorder;
}

describe("the queue of a recording", () => {
  it("of one session asks it to wait before the bound, and takes nothing past it", async () => {
    const queue = await start().open("a");
    const part = new Uint8Array(64 * 1024);
    let before = 0;
    while (!queue.isFilling) {
      expect(queue.add("stdout", 0, part)).toBe(true);
      before += part.byteLength;
    }
    expect(before).toBe(MIB - 64 * 1024);
    expect(queue.add("stdout", 0, part)).toBe(true);
    expect(queue.add("stdout", 0, new Uint8Array(1))).toBe(false);
    expect(recorder?.queuedBytes).toBe(MIB);
  });

  it("tells a session that waits once, when a quarter of the bound is left", async () => {
    const queue = await start(TAKING).open("a");
    const left: number[] = [];
    let notify = (): void => {};
    const onRoom = (): void => {
      left.push(recorder?.queuedBytes ?? Number.NaN);
      notify();
    };
    const none = (): void => {};
    queue.begin({} as never, { onRoom, onFailed: none, onGap: none, onChunk: none });
    const part = new Uint8Array(64 * 1024);
    for (let round = 1; round <= 3; round++) {
      const notified = new Promise<void>((resolve) => {
        notify = resolve;
      });
      while (!queue.isFilling) expect(queue.add("stdout", 0, part)).toBe(true);
      await notified;
      expect(left).toHaveLength(round);
    }
    expect(left.every((bytes) => bytes <= MIB / 4)).toBe(true);
    const lost = new Promise<void>((resolve) => {
      notify = resolve;
    });
    while (queue.add("stdout", 0, part));
    await lost;
    expect(left).toHaveLength(4);
    // A session that does not wait is told nothing.
    expect(queue.add("stdout", 0, part)).toBe(true);
    while ((recorder?.queuedBytes ?? 0) > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(left).toHaveLength(4);
  });

  it("of all sessions asks each to wait, and takes nothing past its bound", async () => {
    const owner = start();
    const queues = await Promise.all(["a", "b", "c"].map((file) => owner.open(file)));
    const part = new Uint8Array(900 * 1024);
    expect(queues.map((queue) => queue.add("stdout", 0, part))).toEqual([true, true, false]);
    expect(queues[2]?.add("stdout", 0, new Uint8Array(64 * 1024))).toBe(true);
    expect(queues[2]?.isFilling).toBe(true);
  });

  it("of a thread that ended fails, also if the thread's lease cannot be removed", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-recorder-"));
    mkdirSync(path.join(folder, "writers/w.json"), { recursive: true });
    const ended = new URL("data:text/javascript,import%20%22node:worker_threads%22");
    const problems: string[] = [];
    const opening = start(ended, folder, (problem) => void problems.push(problem)).open("a");
    await expect(opening).rejects.toThrow("has ended");
    expect(problems).toEqual(["ERR_FS_EISDIR"]);
    rmSync(folder, { recursive: true });
  });

  it("of a thread that ended takes nothing, and fails", async () => {
    const problems: string[] = [];
    const ended = new URL("data:text/javascript,import%20%22node:worker_threads%22");
    await expect(start(ended).open("a")).rejects.toThrow("has ended");
    expect(recorder?.size).toBe(0);
    const queue = await start().open("a");
    const events = {
      onRoom: () => {},
      onFailed: (problem: string) => void problems.push(problem),
      onGap: () => {},
      onChunk: () => {},
    };
    queue.threadEnded();
    queue.begin({} as never, events);
    expect(problems).toEqual(["the thread that writes recordings has ended"]);
    expect(queue.add("stdout", 0, new Uint8Array(1))).toBe(false);
  });
});
