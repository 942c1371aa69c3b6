import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoFiles, DemoFolder } from "../../../src/demo/demo-folder.ts";

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

  it("is refused where no folder can be made", async () => {
    await expect(DemoFolder.open("/proc/sluice/demo")).rejects.toThrow("ENOENT");
  });
});
