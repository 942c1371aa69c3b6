import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { type ArchivedFile, ArchiveReader } from "../../../src/recording/format/archive-reader.ts";
import { archiveUseOf } from "../../../src/recording/recorded-facts.ts";
import { ArchiveRecord } from "../../../src/recording/thread/archive-record.ts";
import { fixedBound } from "../../support/fixed-bound.ts";

const MAX_EXTENSION_BYTES = fixedBound("src/recording/format/archive-reader.ts", "MAX_EXTENSION_BYTES");
const MAX_NAME_CHARACTERS = fixedBound("src/recording/format/archive-reader.ts", "MAX_NAME_CHARACTERS");
const MAX_FILES = fixedBound("src/recording/thread/archive-record.ts", "MAX_FILES");

const folder = mkdtempSync(path.join(tmpdir(), "sluice-archive-"));
afterAll(() => rmSync(folder, { recursive: true }));

const LONG = `${"long-name/".repeat(15)}end`;
const CONTENTS: Readonly<Record<string, Buffer>> = {
  "empty.txt": Buffer.alloc(0),
  "block.bin": Buffer.alloc(512, 7),
  "big.bin": Buffer.alloc(70_001, "content "),
  "n\u00e4me.txt": Buffer.from("umlaut"),
  [LONG]: Buffer.from("far down"),
};
for (const [name, content] of Object.entries(CONTENTS)) {
  mkdirSync(path.dirname(path.join(folder, "tree", name)), { recursive: true });
  writeFileSync(path.join(folder, "tree", name), content, { mode: 0o640 });
}
symlinkSync("big.bin", path.join(folder, "tree", "link"));

const packed = (...options: string[]): Buffer =>
  execFileSync("tar", [...options, "-cf", "-", "-C", path.join(folder, "tree"), "."]);
const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("base64");

function read(archive: Uint8Array, cut: number) {
  const files: ArchivedFile[] = [];
  const reader = new ArchiveReader((file) => files.push(file));
  const rest: Uint8Array[] = [];
  for (let at = 0; at < archive.byteLength; at += cut) {
    const part = reader.push(archive.subarray(at, at + cut));
    if (part !== undefined) rest.push(part);
  }
  const held = reader.end();
  if (held !== undefined) rest.push(held);
  return { files, rest: Buffer.concat(rest) };
}

describe("a tar archive", () => {
  it.each([["gnu"], ["pax"], ["ustar"]])("of the format %s has the digests of its files", (format) => {
    for (const cut of [1, 511, 512, 4_096, 1_000_000]) {
      const { files, rest } = read(packed("--format", format), cut);
      expect(rest.byteLength).toBe(0);
      const found = Object.fromEntries(files.map((file) => [file.name.replace("./", ""), file]));
      for (const [name, content] of Object.entries(CONTENTS))
        expect(found[name]).toEqual({
          name: `./${name}`,
          type: "file",
          mode: "640",
          size: content.byteLength,
          sha256: sha256(content),
        });
      expect(found.link).toMatchObject({ type: "link", size: 0 });
      expect(files[0]).toMatchObject({ name: "./", type: "folder" });
    }
  });

  it("that ends within a file says so", () => {
    writeFileSync(path.join(folder, "one"), Buffer.alloc(2_000, "x"));
    const whole = execFileSync("tar", ["-cf", "-", "-C", folder, "one"]);
    const { files } = read(whole.subarray(0, 512 + 1_500), 100);
    const digest = sha256(Buffer.alloc(1_500, "x"));
    expect(files).toMatchObject([{ name: "one", size: 2_000, cutAt: 1_500, sha256: digest }]);
  });

  it.each([["short"], ["not an archive\n".repeat(100)]])("is told from other output of a program", (text) => {
    expect(read(Buffer.from(text), 100)).toEqual({ files: [], rest: Buffer.from(text) });
  });

  it("may be followed by other output", () => {
    const after = Buffer.alloc(700, "after");
    const { files, rest } = read(Buffer.concat([packed(), after]), 333);
    expect(files.length).toBeGreaterThan(5);
    expect(rest).toEqual(after);
  });

  it("crashes no reader wherever it is damaged", () => {
    const archive = packed("--format", "pax");
    const bytes = fc.array(fc.tuple(fc.nat(archive.byteLength - 1), fc.nat(255)), { maxLength: 20 });
    fc.assert(
      fc.property(bytes, fc.integer({ min: 100, max: 5_000 }), (changes, cut) => {
        const copy = Buffer.from(archive);
        for (const [at, byte] of changes) copy[at] = byte;
        const { rest } = read(copy, cut);
        expect(copy.subarray(copy.byteLength - rest.byteLength)).toEqual(rest);
      }),
      { numRuns: 100 },
    );
  });

  it("has names that are cut, and no extension that is too long", () => {
    const header = (kind: string, size: number): Buffer => {
      const block = Buffer.alloc(512);
      block.write("x", 0);
      block.write(size.toString(8).padStart(11, "0"), 124);
      block.write("        ", 148);
      block.write(kind, 156);
      const sum = block.reduce((all, byte) => all + byte, 0);
      block.write(sum.toString(8).padStart(6, "0"), 148);
      return block;
    };
    const named = (length: number): Buffer => {
      const padded = Buffer.alloc(Math.ceil(length / 512) * 512);
      padded.write("n".repeat(length));
      return Buffer.concat([header("L", length), padded, header("0", 0)]);
    };
    const { files } = read(named(5_000), 4_096);
    expect(files.map(({ name }) => name)).toEqual(["n".repeat(MAX_NAME_CHARACTERS)]);
    expect(read(named(MAX_EXTENSION_BYTES), 4_096).rest.byteLength).toBe(0);
    expect(read(named(MAX_EXTENSION_BYTES + 1), 4_096).rest.byteLength).toBeGreaterThan(MAX_EXTENSION_BYTES);
  });
});

describe("the record of an archive", () => {
  it("names files up to its bound, and counts the others", () => {
    const events: [string, string][] = [];
    const record = new ArchiveRecord(100, (_timeMs, code, data) => events.push([code, data]));
    const header = execFileSync("tar", ["-cf", "-", "-C", path.join(folder, "tree"), "empty.txt"]).subarray(
      0,
      512,
    );
    for (let index = 0; index < MAX_FILES + 3; index++) record.push(0, header);
    record.end(0);
    expect(events.filter(([code]) => code === "f")).toHaveLength(MAX_FILES);
    expect(events.at(-1)).toEqual(["m", "files that are not recorded: 3"]);
  });

  it("keeps other output up to its bound, and a digest of other input", () => {
    const events: [string, string][] = [];
    const write = (_timeMs: number, code: string, data: string): void => void events.push([code, data]);
    const record = new ArchiveRecord(700, write);
    expect(record.push(0, Buffer.alloc(1_000, "o"))?.byteLength).toBe(700);
    record.end(0);
    const taken = new ArchiveRecord(700, write);
    taken.take(0, Buffer.from("secret input"));
    expect(taken.end(0)).toBeUndefined();
    expect(events).toEqual([
      ["m", "output beyond the bound of the recording: 300 bytes"],
      ["d", JSON.stringify({ of: "stdin", bytes: 12, sha256: sha256(Buffer.from("secret input")) })],
    ]);
  });

  it("names a slow file once, before its end", () => {
    const events: string[] = [];
    const record = new ArchiveRecord(700, (_timeMs, _code, data) => events.push(data));
    writeFileSync(path.join(folder, "slow"), Buffer.alloc(2_000, "x"));
    const whole = execFileSync("tar", ["-cf", "-", "-C", folder, "slow"]);
    record.push(0, whole.subarray(0, 1_000));
    record.announce();
    record.announce();
    expect(events).toEqual([JSON.stringify({ name: "slow", type: "file", size: 2_000, begun: true })]);
  });
});

it.each([
  [["tar", "cf", "-", "/etc"], "pack"],
  [["tar", "-xmf", "-", "-C", "/tmp"], "unpack"],
  [["/bin/tar", "--create", "."], "pack"],
  [["sh", "-c", "tar cf - /x | tail -c+1024"], "pack"],
  [["sh", "-c", 'cd "$1" && exec tar cf - .', "sh", "/x"], "pack"],
  [["sh", "-c", 'set -C && echo $$ > "$1.pid" && cd "$1" && exec tar xmf -', "sh", "/x"], "unpack"],
  [["tar", "tf", "-"], undefined],
  [["sh", "-c", "echo start"], undefined],
  [["sh"], undefined],
  [[], undefined],
])("%j: %s", (command, use) => {
  expect(archiveUseOf(command)).toBe(use);
});
