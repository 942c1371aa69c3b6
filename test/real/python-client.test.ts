import { execFile, spawnSync } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";

/** An interpreter that can import the client, such as one of a virtual environment. */
const { SLUICE_PYTHON: python = "python3" } = process.env;
const { status, stdout } = spawnSync(python, ["-c", "import kubernetes; print(kubernetes.__version__)"], {
  encoding: "utf8",
});
const script = path.join(import.meta.dirname, "python/kubernetes_client.py");

describe.skipIf(status !== 0)(
  `Python's kubernetes ${stdout?.trim() ?? ""} (needs pip install kubernetes in $SLUICE_PYTHON)`,
  () => {
    let demo: RunningDemo;
    beforeAll(async () => {
      demo = await startDemo();
    }, 60_000);
    afterAll(() => demo?.stop());

    it.each(["web", "web-ws"])("has exit codes, 5 MB each way and 20 forwards of %s", async (pod) => {
      const { stdout } = await promisify(execFile)(python, [script, demo.kubeconfig, pod], {
        timeout: 100_000,
      });
      expect(JSON.parse(stdout)).toEqual({
        exit_code: ["out\n", "err\n", 3],
        download: [5 * 1024 * 1024, "1000000000\n", 0],
        upload: true,
        forwards: 20,
      });
    }, 120_000);
  },
);
