import { createHash, randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inspect, type RemotePath } from "../../../../packages/client/src/copy/remote-path.ts";
import { uploadFile } from "../../../../packages/client/src/copy/upload-file.ts";
import { uploadFolder } from "../../../../packages/client/src/copy/upload-folder.ts";
import { LocalShell, type LocalShellOptions } from "../../../support/local-shell.ts";

const MIB = 1024 * 1024;

let folder: string;
let source: string;
let target: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-broken-off-"));
  [source, target] = [path.join(folder, "source"), path.join(folder, "target")];
  mkdirSync(path.join(source, "in"), { recursive: true });
  for (const name of ["in/a-first", "in/big", "z-last"]) {
    writeFileSync(path.join(source, name), randomBytes(name === "in/big" ? 8 * MIB + 77 : 1_000));
  }
  chmodSync(path.join(source, "in/big"), 0o640);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const digest = (name: string) => createHash("sha256").update(readFileSync(name)).digest("hex");

function expectSame(): void {
  const names = (root: string) => readdirSync(root, { recursive: true, encoding: "utf8" }).sort();
  expect(names(target)).toEqual(names(source));
  for (const name of ["in/a-first", "in/big", "z-last"])
    expect(digest(path.join(target, name))).toBe(digest(path.join(source, name)));
  expect(statSync(path.join(target, "in/big")).mode & 0o777).toBe(0o640);
  expect(readdirSync(folder).sort()).toEqual(["bin", "source", "target"].filter(isThere));
}

const isThere = (name: string) => existsSync(path.join(folder, name));

async function shellAndPath(options: LocalShellOptions): Promise<[LocalShell, RemotePath]> {
  const shell = new LocalShell(options);
  return [shell, await inspect(shell.options().shell, target)];
}

describe("a folder's upload that breaks off inside of a file", () => {
  it("goes on inside of it, through several cuts, and sends no byte of it twice", async () => {
    const [shell, remote] = await shellAndPath({ cutsAfterBytes: [3 * MIB, 2 * MIB, MIB] });
    await uploadFolder(source, target, remote, shell.options());
    expectSame();
    const sent = shell.sentBytes.reduce((sum, bytes) => sum + bytes, 0);
    // tar's own blocks, and what lay between two pieces when tar ended.
    expect(sent).toBeLessThan(8 * MIB + 0.5 * MIB);
  });

  it("sends it again where no SHA-256 would tell a wrong end", async () => {
    const [shell, remote] = await shellAndPath({ cutsAfterBytes: [6 * MIB] });
    await uploadFolder(source, target, remote, shell.options({ verifies: false }));
    expectSame();
    expect(shell.sentBytes.reduce((sum, bytes) => sum + bytes, 0)).toBeGreaterThan(14 * MIB);
  });

  it("is an error where the file has shrunk since, and nothing is left", async () => {
    const [shell, remote] = await shellAndPath({ cutsAfterBytes: [3 * MIB] });
    const note = () => truncateSync(path.join(source, "in/big"), 7 * MIB);
    const options = shell.options({ note });
    await expect(uploadFolder(source, target, remote, options)).rejects.toMatchObject({ code: "changed" });
    expect(readdirSync(folder)).toEqual(["source"]);
  });
});

describe("a container's programs", () => {
  const find = (name: string) =>
    ["/usr/bin", "/bin"].map((at) => path.join(at, name)).find((file) => existsSync(file));

  /** A folder of those that are named, each a link to this machine's own, or to what is all of them. */
  function programs(names: readonly string[], all?: string): string {
    const bin = path.join(folder, "bin");
    mkdirSync(bin);
    for (const name of names) {
      const found = all ?? find(name);
      if (found !== undefined) symlinkSync(found, path.join(bin, name));
    }
    return bin;
  }
  const COMMON = [
    "cat",
    "chmod",
    "cp",
    "dirname",
    "basename",
    "find",
    "kill",
    "mkdir",
    "mv",
    "readlink",
    "rm",
  ];
  const REST = ["sha256sum", "sleep", "tail", "tar"];

  it.for([
    ["stat, and no wc", [...COMMON, ...REST, "stat"], "coreutils"],
    ["wc, and no stat", [...COMMON, ...REST, "wc"], "coreutils"],
    ["busybox's", [...COMMON, ...REST, "stat", "wc"], "busybox"],
    ["busybox's, and no stat", [...COMMON, ...REST, "wc"], "busybox"],
  ] as const)("say how far a copy came: %s", async ([_what, names, whose], context) => {
    const busybox = find("busybox");
    context.skip(whose === "busybox" && busybox === undefined, "busybox is not installed");
    const bin = programs(names, whose === "busybox" ? busybox : undefined);
    const [shell, remote] = await shellAndPath({ path: bin, cutsAfterBytes: [3 * MIB, 2 * MIB] });
    await uploadFolder(source, target, remote, shell.options());
    expectSame();
    expect(shell.sentBytes.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(8 * MIB + 0.5 * MIB);
    const [again, file] = await shellAndPath({ path: bin, cutsAfterBytes: [3 * MIB, 2 * MIB] });
    const destination = path.join(folder, "target/copy");
    await uploadFile(path.join(source, "in/big"), destination, file, again.options());
    expect(digest(destination)).toBe(digest(path.join(source, "in/big")));
    expect(again.sentBytes.reduce((sum, bytes) => sum + bytes, 0)).toBe(8 * MIB + 77);
  });
});
