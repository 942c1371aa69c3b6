import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseHeader } from "../../../src/recording/format/asciicast.ts";
import { seedLine } from "../../../src/recording/format/chain.ts";
import { RecordingCheck } from "../../../src/recording/format/check-recording.ts";
import { findRecording, findRecordings } from "../../../src/recording/reading/find-recordings.ts";
import { readLines } from "../../../src/recording/reading/recording-lines.ts";
import { fixedBound } from "../../support/fixed-bound.ts";

const MAX_LINE_BYTES = fixedBound("src/recording/reading/recording-lines.ts", "MAX_LINE_BYTES");

const folder = mkdtempSync(path.join(tmpdir(), "sluice-lines-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function linesOf(content: string) {
  const file = path.join(folder, "file");
  writeFileSync(file, content);
  const lines: string[] = [];
  const rest = await readLines(file, (line) => void lines.push(line.toString()));
  return { lines, rest: rest.toString() };
}

describe("the lines of a recording", () => {
  it.each([
    ["", [], ""],
    ["a", [], "a"],
    ["a\n\nb\nc", ["a", "", "b"], "c"],
    [`${"x".repeat(600_000)}\ny\n`, ["x".repeat(600_000), "y"], ""],
  ])("of a file", async (content, lines, rest) => {
    expect(await linesOf(content)).toEqual({ lines, rest });
  });

  it("are refused with a line without an end", async () => {
    await expect(linesOf("x".repeat(MAX_LINE_BYTES + 300_000))).rejects.toThrow("too long");
  });
});

describe("files from outside", () => {
  const below = path.join(folder, "outside");
  const header = '{"version":3,"term":{"cols":80,"rows":24}';

  it("are found in folders that link to themselves, and only if they are files", async () => {
    mkdirSync(path.join(below, "a", "b.cast"), { recursive: true });
    for (const name of ["loop", "again"]) symlinkSync("..", path.join(below, "a", name));
    symlinkSync("/etc/passwd", path.join(below, "linked.cast"));
    writeFileSync(path.join(below, "a", "c.cast"), "");
    expect(await findRecordings(below)).toEqual([path.join(below, "a", "c.cast")]);
  });

  it.each([
    [`${header},"sluice":null}`],
    [`${header},"sluice":[]}`],
    [`${header},"sluice":{"session":"a","user":{}}}`],
    [`${header},"sluice":{"session":"a","command":"sh"}}`],
  ])("lose malformed facts: %s", (line) => {
    expect(parseHeader(line)).toEqual({ version: 3, term: { cols: 80, rows: 24 } });
  });

  it("are named by a session's id, also while they are written", async () => {
    const at = path.join(folder, "named");
    mkdirSync(at);
    for (const name of ["a.cast", "a.cast.uploaded", "b.cast.w.part", "b.cast.uploaded", "c.cast.uploaded"])
      writeFileSync(path.join(at, name), "");
    expect(await findRecording(at, "a")).toBe(path.join(at, "a.cast"));
    await expect(findRecording(at, "b")).rejects.toThrow(
      `the recording b is not finished: ${path.join(at, "b.cast.w.part")}`,
    );
    await expect(findRecording(at, "c")).rejects.toThrow("has no recording c");
  });

  it("are checked without an exception if the head is null", () => {
    const check = new RecordingCheck();
    for (const line of [`${header}}`, seedLine(Buffer.alloc(32)), '# sluice {"head":null,"sig":"x"}'])
      check.line(Buffer.from(line));
    expect(check.end(Buffer.alloc(0))).toMatchObject({ verdict: "changed" });
  });
});
