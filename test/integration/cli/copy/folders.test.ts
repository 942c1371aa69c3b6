import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { type Headers as Header, pack } from "tar-stream";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { safeName } from "../../../../packages/client/src/copy/archive-names.ts";
import { type CopyContext, noProgress } from "../../../../packages/client/src/copy/copy-context.ts";
import { downloadFile } from "../../../../packages/client/src/copy/download-file.ts";
import { downloadFolder } from "../../../../packages/client/src/copy/download-folder.ts";
import type { RemotePath, Tool } from "../../../../packages/client/src/copy/remote-path.ts";
import type { RemoteShell } from "../../../../packages/client/src/copy/remote-shell.ts";
import type { PartTaker } from "../../../../packages/client/src/sessions/output-sink.ts";
import { SessionError } from "../../../../packages/client/src/sessions/session-error.ts";
import { printWarning } from "../../../../src/cli/client/report-error.ts";
import type { ShellResult, ShellStreams } from "../../../support/local-shell.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-copy-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A container whose every answer is the test's: what a program prints, by a word of its script. */
function optionsFor(
  answer: (script: string, print: (bytes: Buffer) => void) => Partial<ShellResult>,
): CopyContext {
  const script = async (
    text: string,
    _args: readonly string[],
    streams: ShellStreams = {},
  ): Promise<ShellResult> => {
    const taken: (Promise<void> | undefined)[] = [];
    const result = answer(text, (bytes) => {
      const output = streams.stdout as Writable | PartTaker;
      if ("takePart" in output) taken.push(output.takePart(bytes));
      else output.write(bytes);
    });
    await Promise.all(taken);
    return { exitCode: 0, stdout: "", stderr: "", ...result };
  };
  const shell = {
    script,
    cleanUp: async (text: string, args: string[]) => void (await script(text, args)),
    mustRun: async (text: string, args: string[]) => (await script(text, args)).stdout,
  };
  return {
    shell: shell as unknown as RemoteShell,
    note: () => {},
    retries: 2,
    verifies: true,
    preservesMode: true,
    startProgress: noProgress,
    warn: printWarning,
  };
}

const sourceWith = (...tools: Tool[]): RemotePath => ({
  kind: "folder",
  path: "/data",
  size: 4,
  version: "4 1 1",
  mode: 0o644,
  tools: new Set(tools),
  hasPartial: true,
});

async function archiveOf(...entries: (Partial<Header> & { content?: string })[]): Promise<Buffer> {
  const archive = pack();
  for (const { content = "", ...header } of entries) archive.entry({ name: "x", ...header }, content);
  archive.finalize();
  return buffer(archive as unknown as Readable);
}

const unpack = (archive: Buffer, result: Partial<ShellResult> = {}) =>
  downloadFolder(
    sourceWith("tar"),
    path.join(folder, "out"),
    optionsFor((_script, print) => {
      print(archive);
      return result;
    }),
  );

describe("downloadFolder", () => {
  it.each([
    { name: "../escaped" },
    { name: "/etc/escaped" },
    { name: "a/../../escaped" },
    { name: "hard", type: "link" as const, linkname: "../../escaped" },
  ])("refuses an archive with %o, and leaves nothing", async (header) => {
    const archive = await archiveOf({ name: "./good", content: "good" }, { ...header, content: "" });
    await expect(unpack(archive)).rejects.toMatchObject({ code: "unsafe" });
    expect(readdirSync(folder)).toEqual([]);
  });

  it("writes nothing through a link that came before in the archive", async () => {
    const archive = await archiveOf(
      { name: "dir", type: "symlink", linkname: "/tmp" },
      { name: "dir/file", content: "inside" },
      { name: "pipe", type: "fifo" },
    );
    await unpack(archive);
    expect(readFileSync(path.join(folder, "out/dir/file"), "utf8")).toBe("inside");
    expect(readdirSync(path.join(folder, "out"))).toEqual(["dir"]);
  });

  it("waits for the last entry of an archive that has no end blocks", async () => {
    const names = Array.from({ length: 20 }, (_, index) => `${"deep/".repeat(30)}${index}`);
    for (const name of names) {
      const archive = await archiveOf({ name, content: "" });
      await unpack(archive.subarray(0, archive.length - 1_024));
      expect(readFileSync(path.join(folder, "out", name), "utf8")).toBe("");
    }
    expect(readdirSync(folder)).toEqual(["out"]);
  });

  it("leaves nothing where the last entry fails after the archive's end", async () => {
    const archive = await archiveOf({ name: "a", content: "" }, { name: "a/b", content: "" });
    await expect(unpack(archive.subarray(0, archive.length - 1_024))).rejects.toMatchObject({
      code: "local",
    });
    expect(readdirSync(folder)).toEqual([]);
  });

  it("an archive that ends early, is none, or whose program fails, is an error, and leaves nothing", async () => {
    const whole = await archiveOf({ name: "file", content: "x".repeat(5_000) });
    await expect(unpack(whole.subarray(0, 3_000))).rejects.toThrow();
    await expect(unpack(Buffer.from("not an archive".repeat(100)))).rejects.toThrow();
    const failed = { exitCode: 1, stderr: "tar: x: Cannot open" };
    await expect(unpack(whole, failed)).rejects.toMatchObject({ code: "remote", message: /Cannot open/ });
    const changed = { exitCode: 1, stderr: "tar: ./x: file changed as we read it" };
    await expect(unpack(whole, changed)).rejects.toMatchObject({ code: "changed" });
    expect(readdirSync(folder)).toEqual([]);
  });

  it("a file whose SHA-256 differs is an error", async () => {
    const archive = await archiveOf({ name: "file", content: "data" });
    const options = optionsFor((script, print) => {
      if (script.includes("sha256sum")) return { stdout: `${"0".repeat(64)}  ./file\n` };
      print(archive);
      return {};
    });
    const copy = downloadFolder(sourceWith("tar", "sha256sum", "find"), path.join(folder, "out"), options);
    await expect(copy).rejects.toMatchObject({ code: "changed" });
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("downloadFile", () => {
  const source = { ...sourceWith("tail", "sha256sum"), kind: "file" as const };
  const isRead = (script: string) => script.includes("afterwards");
  const read = (hash: string) => ({ stderr: `afterwards 4 1 1\n${hash}\n` });

  it("a SHA-256 that differs, or bytes that are missing, is an error, and nothing is left", async () => {
    for (const [content, hash] of [
      ["data", "0".repeat(64)],
      ["dat", "0".repeat(64)],
    ]) {
      const options = optionsFor((_script, print) => {
        print(Buffer.from(content ?? ""));
        return read(hash ?? "");
      });
      const copy = downloadFile(source, path.join(folder, "out"), options);
      await expect(copy).rejects.toMatchObject({ code: "mismatch" });
      expect(readdirSync(folder)).toEqual([]);
    }
  });

  it("gives up after attempts that bring nothing, and keeps what it has under another name", async () => {
    let attempts = 0;
    const options = optionsFor((script, print) => {
      expect(isRead(script)).toBe(true);
      attempts += 1;
      if (attempts === 1) print(Buffer.from("da"));
      throw new SessionError("connection-lost", "gone");
    });
    const copy = downloadFile(source, path.join(folder, "out"), options);
    await expect(copy).rejects.toMatchObject({ code: "connection-lost" });
    expect(attempts).toBe(4);
    expect(readdirSync(folder).sort()).toEqual([".out.sluice-partial", ".out.sluice-partial.of"]);
    expect(readFileSync(path.join(folder, ".out.sluice-partial"), "utf8")).toBe("da");
  });

  it("does not go on with what another file left", async () => {
    writeFileSync(path.join(folder, ".out.sluice-partial"), "xx");
    writeFileSync(path.join(folder, ".out.sluice-partial.of"), "another version");
    const { createHash } = await import("node:crypto");
    const hash = createHash("sha256").update("data").digest("hex");
    const scripts: string[] = [];
    const options = optionsFor((script, print) => {
      scripts.push(script);
      print(Buffer.from("data"));
      return read(hash);
    });
    await downloadFile(source, path.join(folder, "out"), options);
    expect(scripts.some((script) => script.includes("cat "))).toBe(true);
    expect(readFileSync(path.join(folder, "out"), "utf8")).toBe("data");
    expect(readdirSync(folder)).toEqual(["out"]);
  });
});

describe("safeName", () => {
  it.each([
    ["./a/b", "a/b"],
    [".", ""],
    ["a//b/", "a/b"],
    ["..a", "..a"],
  ])("%s is %s", (name, expected) => {
    expect(safeName(name)).toBe(expected);
  });

  it.each(["..", "a/..", "/a", "a\0b"])("%j is refused", (name) => {
    expect(() => safeName(name)).toThrow("outside of the destination");
  });
});
