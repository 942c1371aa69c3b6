import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inspect } from "../../../../packages/client/src/copy/remote-path.ts";
import type { RemoteShell } from "../../../../packages/client/src/copy/remote-shell.ts";
import { LocalShell } from "../../../support/local-shell.ts";

let root: string;
const shell = new LocalShell() as unknown as RemoteShell;
const look = (name: string, more?: string) => inspect(shell, `${root}/${name}`, more);

beforeEach(() => {
  root = realpathSync(mkdtempSync(path.join(tmpdir(), "sluice-look-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

describe("the first look at a path in the container", () => {
  it("follows the links of its folder, and says what it is", async () => {
    mkdirSync(path.join(root, "real"));
    symlinkSync("real", path.join(root, "link"));
    writeFileSync(path.join(root, "real/file"), "four");
    expect(await look("link/file")).toMatchObject({ kind: "file", path: `${root}/real/file`, size: 4 });
    expect(await look("link/none")).toMatchObject({ kind: "absent", path: `${root}/real/none`, size: 0 });
    expect(await look("link")).toMatchObject({ kind: "folder", path: `${root}/real` });
    expect(await inspect(shell, "/")).toMatchObject({ kind: "folder", path: "/" });
    expect(await inspect(shell, "/none-at-all")).toMatchObject({ kind: "absent", path: "/none-at-all" });
    expect(await inspect(shell, "/dev/null")).toMatchObject({ kind: "other", path: "/dev/null" });
  });

  it.each([
    "with\nline feeds\n",
    "back\\slash\\n",
    " spaces ",
    "-n",
    "$(id)",
    "'\"",
    "\npath x",
  ])("keeps the name %j", async (name) => {
    mkdirSync(path.join(root, name));
    writeFileSync(path.join(root, name, name), "1");
    expect(await look(name)).toMatchObject({ kind: "folder", path: path.join(root, name) });
    expect(await look(`${name}/${name}`)).toMatchObject({
      kind: "file",
      path: path.join(root, name, name),
      size: 1,
    });
    expect(await look(`${name}/none${name}`)).toMatchObject({
      kind: "absent",
      path: path.join(root, name, `none${name}`),
    });
  });

  it.each([
    "none/file",
    "none/deeper/file",
    "file/below",
    "dangling/file",
    "none/.",
    "file/.",
  ])("a folder that cannot be entered is the look's failure: %s", async (name) => {
    writeFileSync(path.join(root, "file"), "");
    symlinkSync("nowhere", path.join(root, "dangling"));
    await expect(look(name)).rejects.toThrow(/exit code [12]: .*(cd|can't)/);
  });

  it("takes a relative path from where it is, whatever CDPATH says", async () => {
    const other = `cd ${JSON.stringify(root)}; CDPATH=/; export CDPATH; `;
    const there = {
      mustRun: (script: string, args: readonly string[]) =>
        new LocalShell().mustRun(`${other}${script}`, args),
    } as unknown as RemoteShell;
    mkdirSync(path.join(root, "etc"));
    writeFileSync(path.join(root, "etc/file"), "abc");
    expect(await inspect(there, "etc/file")).toMatchObject({ path: `${root}/etc/file`, size: 3 });
    expect(await inspect(there, "etc")).toMatchObject({ path: `${root}/etc` });
    expect(await inspect(there, "new")).toMatchObject({ kind: "absent", path: `${root}/new` });
  });

  it("finds what an upload of before left", async () => {
    mkdirSync(path.join(root, "sub"));
    writeFileSync(path.join(root, ".file.sluice-partial"), "");
    writeFileSync(path.join(root, "sub/.name.sluice-partial"), "");
    expect((await look("file")).hasPartial).toBe(true);
    expect((await look("sub", "name")).hasPartial).toBe(true);
    expect((await look("sub", "other")).hasPartial).toBe(false);
    expect(readdirSync(root)).toHaveLength(2);
  });
});
