import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { noProgress } from "../../../../packages/client/src/copy/copy-context.ts";
import { downloadFolder } from "../../../../packages/client/src/copy/download-folder.ts";
import type { RemotePath } from "../../../../packages/client/src/copy/remote-path.ts";
import type { RemoteShell } from "../../../../packages/client/src/copy/remote-shell.ts";
import type { ShellStreams } from "../../../support/local-shell.ts";

const BLOCK = 512;
const END = Buffer.alloc(2 * BLOCK);

const padded = (content: string): Buffer =>
  Buffer.concat([Buffer.from(content, "latin1"), Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)]);

/** A header with its right sum. A size of bytes is written as it is. */
function head(name: string, type: string, size: number | Buffer = 0, linkname = ""): Buffer {
  const header = Buffer.alloc(BLOCK);
  header.write(name.slice(0, 100), 0, "latin1");
  header.write("0000644\0", 100);
  if (typeof size === "number") header.write(size.toString(8).padStart(11, "0"), 124);
  else size.copy(header, 124);
  header.write(" ".repeat(8), 148);
  header.write(type, 156);
  header.write(linkname, 157, "latin1");
  header.write("ustar\x0000", 257, "latin1");
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return header;
}

const entry = (name: string, type: string, content: string): Buffer =>
  Buffer.concat([head(name, type, content.length), padded(content)]);
const file = (name: string, content = "x"): Buffer => entry(name, "0", content);
const record = (text: string): string => {
  const length = text.length + 2;
  return `${length + String(length + String(length).length).length} ${text}\n`;
};
const pax = (...records: string[]): Buffer => entry("pax", "x", records.join(""));
const longName = (name: string): Buffer => entry("././@LongLink", "L", name);
const binary = (first: number, rest: number): Buffer => Buffer.from([first, ...Array(11).fill(rest)]);
const MEBIBYTES = Array.from({ length: 64 }, () => Buffer.alloc(1024 * 1024));
const ok = file("ok");

/** What a hostile container's tar writes, in place of its folder. */
describe("an archive", () => {
  let folder = "";
  const warnings: string[] = [];
  beforeEach(() => {
    warnings.length = 0;
    folder = mkdtempSync(path.join(tmpdir(), "sluice-hostile-"));
    mkdirSync(path.join(folder, "in"));
    writeFileSync(path.join(folder, "in", "secret"), "mine");
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function unpack(archive: readonly Buffer[], maxEntries?: number): Promise<void> {
    const script = async (_text: string, _args: readonly string[], { stdout }: ShellStreams = {}) => {
      const output = stdout as Writable;
      for (const part of archive) {
        if (output.destroyed) break;
        if (!output.write(part))
          await new Promise<void>((resolve) => {
            output.once("drain", resolve).once("close", resolve);
          });
      }
      return { exitCode: 0, stdout: "", stderr: "" };
    };
    const source = { kind: "folder", path: "/data", tools: new Set(["tar"]) } as unknown as RemotePath;
    const options = {
      shell: { script, cleanUp: script, mustRun: async () => "" } as unknown as RemoteShell,
      note: () => {},
      retries: 0,
      verifies: true,
      preservesMode: true,
      startProgress: noProgress,
      warn: (text: string) => void warnings.push(text),
    };
    await downloadFolder(source, path.join(folder, "in", "out"), options, maxEntries);
  }

  /** Every name below the destination's parent; nothing else may be there, nor its secret have changed. */
  function found(): readonly string[] {
    expect(readdirSync(folder)).toEqual(["in"]);
    expect(readFileSync(path.join(folder, "in", "secret"), "utf8")).toBe("mine");
    return readdirSync(path.join(folder, "in"), { recursive: true, encoding: "utf8" })
      .filter((name) => name !== "secret" && name !== "out")
      .sort();
  }

  it.each<[string, readonly Buffer[], RegExp]>([
    ["a PAX name that leads outside", [pax(record("path=../secret")), ok], /outside of the destination/],
    ["a PAX name with NUL", [pax(record("path=a\0b")), ok], /outside of the destination/],
    [
      "a long name that leads outside",
      [longName(`${"a/".repeat(60)}${"../".repeat(61)}secret`), ok],
      /outside/,
    ],
    ["a name of 64 KiB", [longName("a".repeat(65_536)), ok], /name too long/],
    ["folders 32,768 deep", [longName("a/".repeat(32_768)), ok], /name too long/],
    ["a hard link to a file outside", [head("h", "1", 0, "../secret"), ok], /outside of the destination/],
    ["a hard link to an absolute name", [head("h", "1", 0, "/etc/passwd"), ok], /outside of the destination/],
    ["a hard link to nothing", [head("h", "1", 0, "none"), ok], /no such file/],
    ["a hard link to itself", [file("a"), head("a", "1", 0, "a")], /no such file/],
    ["a hard link to the folder", [head("a", "1", 0, ".")], /not permitted|is a directory/],
    ["a hard link in place of the folder", [ok, head("./", "1", 0, "ok")], /is a directory/],
    [
      "a hard link to a link",
      [head("l", "2", 0, "../secret"), head("m", "1", 0, "l"), file("m")],
      /no such file/,
    ],
    ["a file in place of the folder", [file(".")], /is a directory|illegal operation/],
    ["a folder over a file", [file("a"), head("a/", "5")], /file exists|already exists/],
    ["a file over a folder", [head("a/", "5"), file("a")], /is a directory|illegal operation/],
    ["a file below a file", [file("a"), file("a/b")], /file exists|already exists/],
    ["a size of -1", [head("f", "0", binary(0xff, 0xff))], /states a size of -1/],
    ["a size far below zero", [head("f", "0", binary(0xff, 0))], /states a size of -/],
    ["a size past 2^53", [head("f", "0", binary(0x80, 0x7f))], /states a size of \d/],
    ["a long name of a negative size", [head("f", "L", binary(0xff, 0)), ok], /cannot be read/],
    ["PAX records of a negative size", [head("f", "x", binary(0xff, 0)), ok], /cannot be read/],
    ["a PAX size that is no number", [pax(record("size=x")), ok], /states a size of NaN/],
    [
      "a PAX size that is none of the content's",
      [pax(record("size=0")), file("f", "content")],
      /Invalid tar header/,
    ],
    ["a sparse file of GNU tar", [entry("s", "S", "abc"), ok], /"s" is of an unknown type/],
    [
      "a sparse file in PAX",
      [pax(record("GNU.sparse.major=1")), file("s", "1\n0\n1\n")],
      /"s" is a sparse file/,
    ],
    ["an unknown type", [entry("v", "V", "abc"), ok], /"v" is of an unknown type/],
    ["zeros without an end", MEBIBYTES, /a header is longer than 1 MiB/],
    ["zeros without an end behind a file", [ok, ...MEBIBYTES], /a header is longer than 1 MiB/],
    [
      "headers without an entry",
      Array(3_000).fill(pax(record("comment=x"))),
      /a header is longer than 1 MiB/,
    ],
    ["rubbish behind its end", [ok, END, Buffer.from("rubbish".repeat(1_000))], /Invalid tar header/],
  ])("with %s is refused, and leaves nothing", async (_, archive, message) => {
    const refused = await unpack([...archive, END]).then(
      () => "unpacked",
      (error: Error) => `${error.name}: ${error.message}`,
    );
    expect(refused).toMatch(/^CopyError: /);
    expect(refused).toMatch(message);
    expect(refused.length).toBeLessThan(1_500);
    expect(found()).toEqual([]);
  });

  it.each<[string, readonly Buffer[], readonly string[]]>([
    ["a name with a line feed", [file("a\nb")], ["out/a\nb"]],
    [
      "PAX records of no length, or of too much",
      [pax("0 path=x\n"), file("a"), pax("path=x\n"), file("b")],
      ["out/a", "out/b"],
    ],
    ["a record that is a name of JavaScript", [pax(record("__proto__=x")), ok], ["out/ok"]],
    ["a name for all of its entries", [entry("g", "g", record("path=../secret")), ok], ["out/ok"]],
    ["a link, and a file through it", [head("l", "2", 0, ".."), file("l/secret")], ["out/l", "out/l/secret"]],
    ["devices and pipes", [head("c", "3"), head("b", "4"), head("p", "6"), ok], ["out/ok"]],
    ["names that differ in case alone", [file("A"), file("a")], ["out/A", "out/a"]],
    ["a file twice", [file("a", "1"), file("a", "2")], ["out/a"]],
    ["a folder of a negative size", [head("d/", "5", binary(0xff, 0xfe)), ok], []],
  ])("with %s writes below its folder alone", async (_, archive, names) => {
    await unpack([...archive, END]).catch((error: Error) => expect(error.name).toBe("CopyError"));
    expect(found()).toEqual(names);
  });

  it("that ends within any of its blocks is refused", async () => {
    const whole = Buffer.concat([pax(record("path=n")), file("a", "y".repeat(700)), file("b")]);
    for (let blocks = 0; blocks < 7; blocks += 1) {
      await expect(unpack([whole.subarray(0, blocks * BLOCK + 100)])).rejects.toThrow(
        "Unexpected end of data",
      );
      expect(found()).toEqual([]);
    }
  });

  it("of more entries than allowed is refused", async () => {
    const archive = Array.from({ length: 11 }, (_, index) => file(String(index), ""));
    await expect(unpack([...archive, END], 10)).rejects.toThrow("it has more than 10 entries");
    expect(found()).toEqual([]);
    await unpack([...archive.slice(1), END], 10);
    expect(found()).toHaveLength(10);
  });
});
