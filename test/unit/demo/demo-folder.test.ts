import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DemoFolder, DemoFolderTakenError } from "../../../packages/lab/src/demo/demo-folder.ts";

type DemoFiles = Parameters<DemoFolder["writeConfiguration"]>[0];

let parent: string;
beforeAll(() => {
  parent = mkdtempSync(path.join(tmpdir(), "sluice-demo-folder-"));
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const certificate = { certPem: "certificate\n", keyPem: "key\n" };
const files: DemoFiles = {
  ...{ serverCertificate: certificate, nodeCertificate: certificate, kubeletClientCertificate: certificate },
  ...{ token: "token", manifests: "", address: "127.0.0.1", port: 0 },
};

describe("the demo's folder", () => {
  it("goes away with the demo that made it", async () => {
    const name = path.join(parent, "new");
    const folder = await DemoFolder.open(name);
    await folder.writeConfiguration(files);
    expect(readdirSync(name)).toContain("gateway.yaml");
    await folder.remove();
    expect(existsSync(name)).toBe(false);
  });

  it("stays with what somebody else has put there, whoever made it", async () => {
    for (const isThere of [false, true]) {
      const name = path.join(parent, `kept-${isThere}`);
      if (isThere) mkdirSync(name);
      const folder = await DemoFolder.open(name);
      await folder.writeConfiguration(files);
      writeFileSync(path.join(name, "mine.yaml"), "mine");
      await folder.remove();
      expect(readdirSync(name)).toEqual(["mine.yaml"]);
      expect(readFileSync(path.join(name, "mine.yaml"), "utf8")).toBe("mine");
    }
  });

  it.each([
    "kubeconfig",
    "gateway.yaml",
    "server.key",
  ])("is refused where there is a %s, which stays as it is", async (file) => {
    const name = mkdtempSync(path.join(parent, "taken-"));
    for (const prepare of [
      () => writeFileSync(path.join(name, file), "mine"),
      () => symlinkSync("/nonexistent", path.join(name, file)),
    ]) {
      prepare();
      await expect(DemoFolder.open(name)).rejects.toThrow(DemoFolderTakenError);
      expect(readdirSync(name)).toEqual([file]);
      rmSync(path.join(name, file));
    }
  });

  it("is one demo's: a second one writes nothing, removes nothing, and hears of it", async () => {
    const name = mkdtempSync(path.join(parent, "two-"));
    const [first, second] = [await DemoFolder.open(name), await DemoFolder.open(name)];
    await first.writeConfiguration(files);
    await expect(second.writeConfiguration({ ...files, token: "other" })).rejects.toThrow(
      DemoFolderTakenError,
    );
    await second.remove();
    expect(readFileSync(path.join(name, "tokens.csv"), "utf8")).toContain("token,demo");
    await expect(DemoFolder.open(name)).rejects.toThrow(/server\.crt is there already/);
    await first.remove();
    expect(readdirSync(name)).toEqual([]);
  });

  it("is refused where no folder can be made", async () => {
    await expect(DemoFolder.open("/proc/sluice/demo")).rejects.toThrow("ENOENT");
  });
});
