import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { localPath } from "../../../../packages/client/src/copy/archive-names.ts";
import { downloadFolder } from "../../../../packages/client/src/copy/download-folder.ts";
import { inspect } from "../../../../packages/client/src/copy/remote-path.ts";
import { uploadFolder } from "../../../../packages/client/src/copy/upload-folder.ts";
import { LocalShell } from "../../../support/local-shell.ts";

const BUSYBOX = "/usr/bin/busybox";

let folder: string;
let [source, target] = ["", ""];

/** Bytes, one a character. Each is one that a reader of UTF-8, of PAX or of a listing may take for another. */
const FILES = [
  "caf\xe8",
  "caf\xe9",
  "caf\xea",
  "caf\xef\xbf\xbd",
  "caf\xc3\xa9",
  "dir\xff/in\xfe",
  "dir\xff/back\\slash",
  "line\nfeed\xe9",
  `${"l\xe9ng".repeat(20)}/${"n\xe9me".repeat(40)}`,
  "plain",
];

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-bytes-"));
  [source, target] = [path.join(folder, "source"), path.join(folder, "target")];
  for (const name of FILES) {
    mkdirSync(localPath(source, name.slice(0, Math.max(0, name.lastIndexOf("/")))), { recursive: true });
    writeFileSync(localPath(source, name), Buffer.from(name, "latin1"));
  }
  symlinkSync(Buffer.from("caf\xe9", "latin1"), localPath(source, "link\xe9"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function expectFiles(...links: string[]): void {
  const found: string[] = [];
  const walk = (name: string): void => {
    for (const child of readdirSync(localPath(target, name), { encoding: "latin1" })) {
      const below = name === "" ? child : `${name}/${child}`;
      if (FILES.some((file) => file.startsWith(`${below}/`))) walk(below);
      else found.push(below);
    }
  };
  walk("");
  expect(found.sort()).toEqual([...FILES, ...links].sort());
  for (const name of FILES) expect(readFileSync(localPath(target, name), "latin1")).toBe(name);
  expect(readdirSync(folder).sort()).toEqual(["source", "target"]);
}

describe("names that are not UTF-8", () => {
  it.each([true, false])("are downloaded as the bytes that they are; verified: %s", async (verifies) => {
    const shell = new LocalShell();
    const options = shell.options({ verifies });
    const remote = await inspect(options.shell, source);
    await downloadFolder(remote, target, options);
    expectFiles();
    // Again, into the folder that is there.
    await downloadFolder(remote, target, options);
    expectFiles();
  });

  it.each([true, false])("are uploaded as the bytes that they are; verified: %s", async (verifies) => {
    const options = new LocalShell().options({ verifies });
    await uploadFolder(source, target, await inspect(options.shell, target), options);
    expectFiles("link\xe9");
    expect(readlinkSync(localPath(target, "link\xe9"), "latin1")).toBe("caf\xe9");
  });

  it.skipIf(!existsSync(BUSYBOX))("are uploaded to a container of busybox", async () => {
    const bin = mkdtempSync(path.join(tmpdir(), "sluice-busybox-"));
    try {
      for (const tool of [
        "sh",
        "tar",
        "find",
        "sha256sum",
        "stat",
        "cat",
        "cp",
        "mv",
        "rm",
        "mkdir",
        "readlink",
        "wc",
      ])
        symlinkSync(BUSYBOX, path.join(bin, tool));
      const options = new LocalShell({ path: bin }).options();
      await uploadFolder(source, target, await inspect(options.shell, target), options);
      expectFiles("link\xe9");
    } finally {
      rmSync(bin, { recursive: true, force: true });
    }
  });

  it("are sent again where the connection is lost inside of such a file", async () => {
    const big = Buffer.alloc(4 * 1024 * 1024, "x");
    writeFileSync(localPath(source, "caf\xe9"), big);
    const shell = new LocalShell({ cutsAfterBytes: [3 * 1024 * 1024] });
    const options = shell.options();
    await uploadFolder(source, target, await inspect(options.shell, target), options);
    expect(readFileSync(localPath(target, "caf\xe9")).equals(big)).toBe(true);
    expect(shell.sentBytes.length).toBe(2);
  });
});
