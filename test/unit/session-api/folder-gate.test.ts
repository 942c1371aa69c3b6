import { mkdtempSync, promises, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FolderGate, FolderRecordings } from "../../../src/session-api/folder-recordings.ts";
import { fixedBound } from "../../support/fixed-bound.ts";

const MAX_FOLDER_REQUESTS = fixedBound("src/session-api/folder-recordings.ts", "MAX_FOLDER_REQUESTS");
const MAX_FOLDER_WAIT_MS = fixedBound("src/session-api/folder-recordings.ts", "MAX_FOLDER_WAIT_MS");

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const SILENT = { code: 503, message: "the folder of recordings does not answer" };

/** A request whose disk answers when `answer` is called. */
function request(gate: FolderGate) {
  const asked = { isRunning: false, answer: (_text: string) => {} };
  const done = gate.run(() => {
    asked.isRunning = true;
    return new Promise<string>((resolve) => {
      asked.answer = resolve;
    });
  });
  const outcome = done.catch((error: unknown) => error);
  return { asked, outcome };
}

describe("the gate of a folder", () => {
  it("lets a few through at once, and others behind them", async () => {
    const gate = new FolderGate();
    const requests = Array.from({ length: MAX_FOLDER_REQUESTS + 2 }, () => request(gate));
    await vi.advanceTimersByTimeAsync(1);
    const running = () => requests.map(({ asked }) => asked.isRunning);
    expect(running()).toEqual([true, true, false, false]);
    requests[1]?.asked.answer("second");
    await vi.advanceTimersByTimeAsync(1);
    expect([await requests[1]?.outcome, running()]).toEqual(["second", [true, true, true, false]]);
    for (const index of [0, 2]) requests[index]?.asked.answer("done");
    await vi.advanceTimersByTimeAsync(1);
    requests[3]?.asked.answer("last");
    expect(await Promise.all(requests.map(({ outcome }) => outcome))).toEqual([
      "done",
      "second",
      "done",
      "last",
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("gives up a disk that hangs, refuses others at once, and goes on when it answers", async () => {
    const gate = new FolderGate();
    const requests = Array.from({ length: MAX_FOLDER_REQUESTS + 1 }, () => request(gate));
    await vi.advanceTimersByTimeAsync(MAX_FOLDER_WAIT_MS);
    for (const { outcome } of requests) expect(await outcome).toMatchObject(SILENT);
    const later = request(gate);
    expect(await later.outcome).toMatchObject(SILENT);
    expect(later.asked.isRunning).toBe(false);
    for (const { asked } of requests) asked.answer("late");
    await vi.advanceTimersByTimeAsync(1);
    expect(requests.at(-1)?.asked.isRunning).toBe(false);
    const again = request(gate);
    await vi.advanceTimersByTimeAsync(1);
    again.asked.answer("again");
    expect(await again.outcome).toBe("again");
  });

  it("gives up a list that goes on, one at a time, and lets others through meanwhile", async () => {
    const gate = new FolderGate();
    let read = 0;
    let end = (_text: string): void => {};
    const ask = () =>
      gate
        .run(
          () =>
            new Promise<string>((resolve) => {
              end = resolve;
            }),
          () => read,
        )
        .catch((error: unknown) => error);
    const lists = [ask(), ask(), ask()];
    await vi.advanceTimersByTimeAsync(MAX_FOLDER_WAIT_MS - 1);
    read += 1;
    await vi.advanceTimersByTimeAsync(1);
    const [first] = await Promise.all(lists);
    expect(await Promise.all(lists)).toEqual([first, first, first]);
    expect(first).toMatchObject({
      code: 503,
      message: "the folder of recordings is still being read",
      status: { details: { retryAfterSeconds: 1 } },
    });
    const other = request(gate);
    await vi.advanceTimersByTimeAsync(1);
    other.asked.answer("other");
    expect(await other.outcome).toBe("other");
    const again = ask();
    end("first");
    await vi.advanceTimersByTimeAsync(1);
    end("again");
    expect(await again).toBe("again");
  });

  it("is what lists, reads and deletes of recordings go through", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-gate-"));
    const { readdir } = promises;
    const hanging = vi.fn(() => new Promise<never>(() => {}));
    promises.readdir = hanging as never;
    syncBuiltinESMExports();
    try {
      const key = { namespace: "default", id: "a" };
      const asks = [
        (own: FolderRecordings) => own.page({ labels: "", fields: "", limit: 0 }),
        (own: FolderRecordings) => own.state(),
        (own: FolderRecordings) => own.find(key),
        (own: FolderRecordings) => own.content(key, 0, 1),
        (own: FolderRecordings) => own.part(key, 0, 1),
        (own: FolderRecordings) => own.delete(key, "x"),
      ];
      for (const ask of asks) {
        const before = hanging.mock.calls.length;
        const refused = expect(ask(new FolderRecordings(folder))).rejects.toMatchObject(SILENT);
        await vi.waitFor(() => expect(hanging.mock.calls.length).toBe(before + 1));
        await vi.advanceTimersByTimeAsync(MAX_FOLDER_WAIT_MS);
        await refused;
      }
    } finally {
      promises.readdir = readdir;
      syncBuiltinESMExports();
      rmSync(folder, { recursive: true });
    }
  });
});
