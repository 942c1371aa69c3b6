import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { localPath } from "../../../../packages/client/src/copy/archive-names.ts";
import type { CopyContext } from "../../../../packages/client/src/copy/copy-context.ts";
import { downloadFile, downloadToStream } from "../../../../packages/client/src/copy/download-file.ts";
import { downloadFolder } from "../../../../packages/client/src/copy/download-folder.ts";
import { inspect } from "../../../../packages/client/src/copy/remote-path.ts";
import { uploadFile } from "../../../../packages/client/src/copy/upload-file.ts";
import { uploadFolder } from "../../../../packages/client/src/copy/upload-folder.ts";
import { LocalShell, type ShellResult, type ShellStreams } from "../../../support/local-shell.ts";

/** Does something to the source at the first command with content, before or after that runs. */
class ChangingShell extends LocalShell {
  /** What tar says of it, if it is tar that notices. */
  tarSays = "";
  #change: (() => void) | undefined;

  constructor(change: () => void) {
    super();
    this.#change = change;
  }

  override async script(script: string, args: readonly string[], streams: ShellStreams = {}) {
    const change = (streams.stdin ?? streams.stdout) ? this.#change : undefined;
    if (change === undefined) return super.script(script, args, streams);
    this.#change = undefined;
    if (!script.includes("tar cf")) change();
    const result: ShellResult = await super.script(script, args, streams);
    if (!script.includes("tar cf")) return result;
    change();
    return this.tarSays === "" ? result : { ...result, exitCode: 1, stderr: this.tarSays };
  }
}

const NAME = "l\xf6g 1";
let folder: string;
let [source, target] = ["", ""];
let log: Buffer;
let stderr = "";
let start: Buffer;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-growing-"));
  [source, target] = [path.join(folder, "source"), path.join(folder, "target")];
  mkdirSync(source);
  log = localPath(source, NAME);
  stderr = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    stderr += text;
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

const CHANGES = {
  grows: (file: Buffer | string) => appendFileSync(file, "more"),
  shrinks: (file: Buffer | string) => truncateSync(file, 5),
  "is written anew": (file: Buffer | string) => writeFileSync(file, Buffer.alloc(start.byteLength + 9, "n")),
};
type Change = keyof typeof CHANGES;

/** Copies a file of a plain name, or a folder, while it changes. Resolves to what arrived. */
async function copy(
  kind: "file" | "stream" | "folder",
  way: "up" | "down",
  change: Change,
  more: Partial<CopyContext> & { bytes?: number; tarSays?: string } = {},
): Promise<Buffer> {
  const { bytes = 100_000, tarSays = "", ...rest } = more;
  start = Buffer.alloc(bytes, "0123456789\n");
  const plain = path.join(source, "log");
  const file = kind === "folder" ? log : plain;
  writeFileSync(file, start);
  const shell = new ChangingShell(() => CHANGES[change](file));
  shell.tarSays = tarSays;
  const options = shell.options(rest);
  if (kind === "folder") {
    const remote = await inspect(options.shell, way === "up" ? target : source);
    await (way === "up"
      ? uploadFolder(source, target, remote, options)
      : downloadFolder(remote, target, options));
    return readFileSync(localPath(target, NAME));
  }
  const remote = await inspect(options.shell, way === "up" ? target : plain);
  if (kind === "stream") {
    const output = new PassThrough();
    const taken = buffer(output);
    await downloadToStream(remote, output, options);
    output.end();
    return taken;
  }
  if (way === "up") await uploadFile(plain, target, remote, options);
  else await downloadFile(remote, target, options);
  return readFileSync(target);
}

const CASES = [
  ["file", "up"],
  ["file", "down"],
  ["stream", "down"],
  ["folder", "up"],
  ["folder", "down"],
] as const;

describe("a file that changes while it is copied", () => {
  for (const verifies of [true, false]) {
    it.each(
      CASES,
    )(`grows: what it was at the start arrives, and a note: %s, %s, verified: ${verifies}`, async (kind, way) => {
      expect((await copy(kind, way, "grows", { verifies })).equals(start)).toBe(true);
      // Of a folder's download without SHA-256, tar alone would see it.
      if (kind !== "folder" || way === "up" || verifies)
        expect(stderr).toMatch(/^warning: .* grew while it was read: the copy has its first 100000 bytes\n$/);
      expect(readdirSync(folder).sort()).toEqual(kind === "stream" ? ["source"] : ["source", "target"]);
    });
  }

  it.each(CASES)("grows, and is larger than what goes at once: %s, %s", async (kind, way) => {
    expect((await copy(kind, way, "grows", { bytes: 3_000_000 })).equals(start)).toBe(true);
    expect(stderr).toContain("the copy has its first 3000000 bytes");
  });

  it.each(CASES)("was empty at the start: %s, %s", async (kind, way) => {
    expect(await copy(kind, way, "grows", { bytes: 0 })).toHaveLength(0);
    expect(stderr).toContain("the copy has its first 0 bytes");
  });

  it.each(CASES)("shrinks: an error, and nothing is left: %s, %s", async (kind, way) => {
    await expect(copy(kind, way, "shrinks")).rejects.toMatchObject({ code: "changed" });
    expect(readdirSync(folder)).toEqual(["source"]);
    expect(stderr).toBe("");
  });

  it.each(["\\366", "\\303\\266"])("is one that GNU tar names in its own way: %s", async (bytes) => {
    const tarSays = `tar: ./l${bytes}g 1: file changed as we read it\n`;
    const copying = copy("folder", "down", "grows", { verifies: false, tarSays });
    // The second is another file's name.
    if (bytes === "\\366") expect((await copying).equals(start)).toBe(true);
    else await expect(copying).rejects.toMatchObject({ code: "changed" });
    expect(stderr.includes("grew while it was read")).toBe(bytes === "\\366");
  });

  it("is one of twenty of a folder: each is judged, in several commands", async () => {
    start = Buffer.from("start");
    const files = Array.from({ length: 20 }, (_, index) => localPath(source, `${NAME}.${index}`));
    for (const file of files) writeFileSync(file, start);
    const options = new ChangingShell(() => {
      for (const file of files) appendFileSync(file, "more");
    }).options();
    await downloadFolder(await inspect(options.shell, source), target, options);
    expect(readdirSync(target)).toHaveLength(20);
    expect(readFileSync(localPath(target, `${NAME}.19`)).equals(start)).toBe(true);
    expect(stderr.match(/grew while it was read/g)).toHaveLength(20);
  });

  it("has grown and begins with something else: an error", async () => {
    await expect(copy("folder", "down", "is written anew")).rejects.toMatchObject({ code: "changed" });
    expect(readdirSync(folder)).toEqual(["source"]);
  });
});
