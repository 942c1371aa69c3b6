import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_SIZE, headerLine } from "../../../src/recording/format/asciicast.ts";
import { headLine, keyNameOf } from "../../../src/recording/format/signed-head.ts";
import { MAX_INDEXED, RecordingIndex } from "../../../src/recording/reading/recording-index.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

const { privateKey } = generateKeyPairSync("ed25519");

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-index-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function leave(session: string, rest = ""): string {
  const file = path.join(folder, "2026/11/22", `${session}.cast`);
  mkdirSync(path.dirname(file), { recursive: true });
  const head = {
    ...{ bytes: 3, chunks: 1, end: "completed", endedAt: FACTS.startedAt, gaps: 0, hash: "h", lines: 1 },
    ...{ key: keyNameOf(privateKey), session, startedAt: FACTS.startedAt },
  };
  const lines = [
    headerLine({ ...FACTS, session }, DEFAULT_SIZE),
    '[0.000, "o", "abc"]',
    headLine(head, privateKey),
  ];
  writeFileSync(file, `${lines.join("\n")}\n${rest}`);
  return file;
}

const namesOf = async (index: RecordingIndex): Promise<string[]> =>
  (await index.list()).map(({ facts }) => facts.session).sort();

describe("the index of a folder's recordings", () => {
  it("has those that are finished, and follows those that come and go", async () => {
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
    expect(await index.list()).toMatchObject([{ head: { end: "completed" } }, {}]);
  });

  it("has none under the name of another session, which a listed name would open", async () => {
    const index = new RecordingIndex(folder);
    const file = leave("one");
    rmSync(file);
    writeFileSync(
      path.join(path.dirname(file), "two.cast"),
      headerLine({ ...FACTS, session: "one" }, DEFAULT_SIZE),
    );
    expect(await namesOf(index)).toEqual([]);
  });

  it("has files whose lines are read again past so many", async () => {
    expect(MAX_INDEXED).toBeGreaterThanOrEqual(10_000);
    const index = new RecordingIndex(folder, 1);
    const file = leave("one");
    leave("two");
    expect(await namesOf(index)).toEqual(["one", "two"]);
    writeFileSync(file, "something else\n");
    expect(await namesOf(index)).toEqual(["two"]);
    expect(await namesOf(new RecordingIndex(folder))).toEqual(["two"]);
  });

  it("needs a folder", async () => {
    await expect(new RecordingIndex(path.join(folder, "missing")).list()).rejects.toThrow("there is no file");
  });
});
