import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { inspect } from "../../../../packages/client/src/copy/remote-path.ts";
import { uploadFile } from "../../../../packages/client/src/copy/upload-file.ts";
import { uploadFolder } from "../../../../packages/client/src/copy/upload-folder.ts";
import { LocalShell } from "../../../support/local-shell.ts";

let folder: string;
let [source, shared, victim, target] = ["", "", "", ""];

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-planted-"));
  [source, shared, victim] = [
    path.join(folder, "one"),
    path.join(folder, "shared"),
    path.join(folder, "victim"),
  ];
  target = path.join(shared, "one");
  mkdirSync(shared);
  writeFileSync(source, "what is copied");
  writeFileSync(victim, "what");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const PLANTS = {
  link: (name: string) => symlinkSync(victim, name),
  "link to nothing": (name: string) => symlinkSync(path.join(folder, "made"), name),
  "hard link": (name: string) => linkSync(victim, name),
};

function expectUntouched(): void {
  expect(readFileSync(victim, "utf8")).toBe("what");
  expect(readdirSync(folder).sort()).toEqual(["one", "shared", "victim"]);
  expect(readdirSync(shared)).toEqual(["one"]);
}

describe.each(
  Object.entries(PLANTS),
)("what lies at a hidden name is not written through: %s", (_what, plant) => {
  it.each([
    ["the part's", ".one.sluice-partial", true],
    ["the part's, with no SHA-256", ".one.sluice-partial", false],
    ["its writer's", ".one.sluice-partial.pid", true],
  ])("a file's upload: %s", async (_whose, name, verifies) => {
    plant(path.join(shared, name));
    const options = new LocalShell().options({ verifies });
    await uploadFile(source, target, await inspect(options.shell, target), options);
    expect(readFileSync(target, "utf8")).toBe("what is copied");
    expectUntouched();
  });

  it("an upload that is hashed as it grows", async () => {
    truncateSync(source, 65 * 1024 * 1024);
    plant(path.join(shared, ".one.sluice-partial.pid"));
    const options = new LocalShell().options();
    const { tools, ...remote } = await inspect(options.shell, target);
    const without = new Set([...tools].filter((tool) => tool !== "openssl"));
    await uploadFile(source, target, { ...remote, tools: without, hasPartial: false }, options);
    expect(readFileSync(target).equals(readFileSync(source))).toBe(true);
    expectUntouched();
  });

  it.each([".one.sluice-partial", ".one.sluice-partial.pid"])("a folder's upload: %s", async (name) => {
    rmSync(source);
    mkdirSync(source);
    writeFileSync(path.join(source, "in"), "inside");
    plant(path.join(shared, name));
    const options = new LocalShell().options();
    await uploadFolder(source, target, await inspect(options.shell, target), options);
    expect(readFileSync(path.join(target, "in"), "utf8")).toBe("inside");
    expectUntouched();
  });
});
