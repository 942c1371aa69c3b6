import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";

const { SLUICE_PARTS_DIR: parts = path.join(homedir(), ".cache/sluice/real-parts") } = process.env;
const repository = path.join(import.meta.dirname, "../..");
/** The last release before 1.0, and the one that other tests use. */
const RELEASES = [
  ["0.22", path.join(parts, "client-node-0.22")],
  ["1.x", repository],
] as const;

describe("@kubernetes/client-node", () => {
  let demo: RunningDemo;
  beforeAll(async () => {
    demo = await startDemo();
  }, 60_000);
  afterAll(() => demo?.stop());

  for (const [release, folder] of RELEASES) {
    const package_ = path.join(folder, "node_modules/@kubernetes/client-node");
    const manifest = path.join(package_, "package.json");
    const isMissing = !existsSync(manifest);
    const version = isMissing
      ? `${release} (needs npm install --prefix ${folder} @kubernetes/client-node@${release})`
      : JSON.parse(readFileSync(manifest, "utf8")).version;
    it.skipIf(isMissing).each(["web", "web-ws"])(
      `${version} has exit codes, 5 MB each way and 20 forwards of %s`,
      async (pod) => {
        const program = path.join(import.meta.dirname, "javascript/client-node.mjs");
        const words = [program, package_, demo.kubeconfig, pod];
        const { stdout } = await promisify(execFile)(process.execPath, words, { timeout: 110_000 });
        expect(JSON.parse(stdout)).toEqual({
          exit_code: ["out\n", "err\n", 3],
          download: [5 * 1024 * 1024, "1000000000\n", 0],
          upload: true,
          forwards: 20,
        });
      },
      120_000,
    );
  }
});
