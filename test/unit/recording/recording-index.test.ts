import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, mkdtempSync, promises, readFileSync, rmSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_SIZE, headerLine } from "../../../src/recording/format/asciicast.ts";
import { headLine, keyNameOf } from "../../../src/recording/format/signed-head.ts";
import { RecordingIndex } from "../../../src/recording/reading/recording-index.ts";
import { newSessionId } from "../../../src/sessions/session-id.ts";
import { fixedBound } from "../../support/fixed-bound.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const MAX_INDEXED = fixedBound("src/recording/reading/recording-index.ts", "MAX_INDEXED");

const { privateKey } = generateKeyPairSync("ed25519");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-index-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function leave(session: string, rest = "", day = "2026/11/22", facts: Partial<typeof FACTS> = {}): string {
  const file = path.join(folder, day, `${session}.cast`);
  mkdirSync(path.dirname(file), { recursive: true });
  const head = {
    ...{ bytes: 3, chunks: 1, end: "completed", endedAt: FACTS.startedAt, gaps: 0, hash: "h", lines: 1 },
    ...{ key: keyNameOf(privateKey), session, startedAt: FACTS.startedAt },
  };
  const lines = [
    headerLine({ ...FACTS, ...facts, session }, DEFAULT_SIZE),
    '[0.000, "o", "abc"]',
    headLine(head, privateKey),
  ];
  writeFileSync(file, `${lines.join("\n")}\n${rest}`);
  return file;
}

const namesOf = async (index: RecordingIndex): Promise<string[]> =>
  (await index.list()).recordings.map(({ facts }) => facts.session);

describe("the index of a folder's recordings", () => {
  it("lists finished recordings, and notices new and deleted ones", async () => {
    const index = new RecordingIndex(folder);
    expect(await namesOf(index)).toEqual([]);
    const one = leave("one");
    leave("two");
    leave("cut", "[0.000");
    writeFileSync(path.join(folder, "x.cast"), "something else\n");
    writeFileSync(path.join(folder, "empty.cast"), "");
    expect(await namesOf(index)).toEqual(["one", "two"]);
    rmSync(one);
    leave("three");
    expect(await namesOf(index)).toEqual(["three", "two"]);
    const recordings = [{ head: { end: "completed" } }, {}];
    expect(await index.list()).toMatchObject({ recordings, isComplete: true });
  });

  it("lists a recording whose command is as long as a request may be", async () => {
    const command = ["sh", "-c", `: ${'"'.repeat(1_000_000)}`];
    leave("long", "", "2026/11/22", { command });
    const index = new RecordingIndex(folder);
    // A list shows no command, so that fifty thousand recordings need little memory.
    expect((await index.list()).recordings).toMatchObject([{ facts: { session: "long", command: [] } }]);
    expect(await index.find("long")).toMatchObject([{ facts: { command } }]);
  });

  it("omits a file that is named after another session", async () => {
    const index = new RecordingIndex(folder);
    const file = leave("one");
    rmSync(file);
    writeFileSync(
      path.join(path.dirname(file), "two.cast"),
      headerLine({ ...FACTS, session: "one" }, DEFAULT_SIZE),
    );
    expect(await namesOf(index)).toEqual([]);
  });

  it("lists and remembers recordings up to its bound, the newest", async () => {
    expect(MAX_INDEXED).toBe(50_000);
    const index = new RecordingIndex(folder, 2);
    const files = [leave("a", "", "2026/11/23"), leave("b"), leave("c", "", "2026/12/01")];
    expect(await namesOf(index)).toEqual(["a", "c"]);
    expect((await index.list()).isComplete).toBe(false);
    expect(await index.find("b")).toMatchObject([{ facts: { session: "b" } }]);
    for (const file of files) writeFileSync(file, "something else\n");
    expect(await namesOf(index)).toEqual(["a", "c"]);
    expect(await namesOf(new RecordingIndex(folder))).toEqual([]);
  });

  it("lists a file once it is complete, such as one that is being copied", async () => {
    const index = new RecordingIndex(folder);
    const file = leave("one");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.slice(0, -10));
    expect(await namesOf(index)).toEqual([]);
    writeFileSync(file, text);
    expect(await namesOf(index)).toEqual(["one"]);
  });

  it("shares one reading among callers that wait, and starts it after they called", async () => {
    const index = new RecordingIndex(folder);
    leave("one");
    const first = index.list();
    const shared = [index.list(), index.list(), index.list()];
    expect(new Set([first, ...shared]).size).toBe(2);
    // The first list may have passed the folder already.
    leave("two");
    expect((await shared[0])?.recordings).toHaveLength(2);
    expect((await first).recordings.length).toBeGreaterThan(0);
    rmSync(folder, { recursive: true });
    const failing = [index.list(), index.list()];
    for (const each of failing) await expect(each).rejects.toThrow("no such file or folder");
    mkdirSync(folder);
    expect(await namesOf(index)).toEqual([]);
  });

  it("finds one recording by the lines of its file alone", async () => {
    for (const session of ["one", "two", "three"]) leave(session);
    const { open } = promises;
    let opened = 0;
    promises.open = (...args) => {
      opened += 1;
      return open(...args);
    };
    syncBuiltinESMExports();
    try {
      expect(await new RecordingIndex(folder).find("two")).toMatchObject([{ facts: { session: "two" } }]);
      expect(await new RecordingIndex(folder).find("../22/two")).toEqual([]);
      expect(opened).toBe(2);
    } finally {
      promises.open = open;
      syncBuiltinESMExports();
    }
  });

  it("is led to a file by a session's id, however many others there are", async () => {
    const id = newSessionId("0a1b2c3d", new Date("2026-11-22T23:59:59.999Z"));
    const file = leave(id);
    const other = newSessionId("0a1b2c3d", new Date("2026-11-23T00:00:00Z"));
    leave(other);
    const index = new RecordingIndex(folder);
    const { readdir } = promises;
    promises.readdir = (() => Promise.reject(new Error("asked"))) as never;
    syncBuiltinESMExports();
    try {
      expect(await index.find(id)).toMatchObject([{ file, facts: { session: id } }]);
      expect(await index.find(other)).toEqual([]);
    } finally {
      promises.readdir = readdir;
      syncBuiltinESMExports();
    }
    // A copy in another folder is found once it is listed, and a deleted file is not found.
    await index.list();
    expect(await index.find(other)).toMatchObject([{ facts: { session: other } }]);
    rmSync(file);
    expect(await index.find(id)).toEqual([]);
  });

  it("lists the rest if a day's folder is deleted meanwhile", async () => {
    leave("one");
    const { readdir } = promises;
    promises.readdir = (async (...args: Parameters<typeof readdir>) => {
      const entries = await readdir(...args);
      rmSync(path.join(folder, "2026"), { recursive: true, force: true });
      return entries;
    }) as typeof readdir;
    syncBuiltinESMExports();
    try {
      expect(await namesOf(new RecordingIndex(folder))).toEqual([]);
    } finally {
      promises.readdir = readdir;
      syncBuiltinESMExports();
    }
  });

  it("needs a folder", async () => {
    await expect(new RecordingIndex(path.join(folder, "missing")).list()).rejects.toThrow(
      "no such file or folder",
    );
  });
});
