import { execFile, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";

const { SLUICE_PARTS_DIR: parts = path.join(homedir(), ".cache/sluice/real-parts") } = process.env;
const jars = path.join(parts, "java-client");
const VERSION = /^kubernetes-client-(\d[\d.]*)\.jar$/;
const [version] = existsSync(jars) ? readdirSync(jars).flatMap((name) => VERSION.exec(name)?.[1] ?? []) : [];
/** The first that runs a source file with the language of the client's test is 17. */
const isMissing = version === undefined || spawnSync("java", ["--source", "17", "--version"]).status !== 0;

describe.skipIf(isMissing)(
  `Java's fabric8 ${version ?? "(needs java 17, and mvn dependency:copy-dependencies in test/real/java)"}`,
  () => {
    let demo: RunningDemo;
    beforeAll(async () => {
      demo = await startDemo();
    }, 60_000);
    afterAll(() => demo?.stop());

    it("has exit codes, 5 MB each way and 20 forwards of pods on nodes of both kinds", async () => {
      const program = path.join(import.meta.dirname, "java/Fabric8Client.java");
      const words = ["-cp", `${jars}/*`, program, demo.kubeconfig, "web", "web-ws"];
      const { stdout } = await promisify(execFile)("java", words, { timeout: 170_000 });
      const checks = {
        exit_code: ["out\n", "err\n", 3],
        download: [5 * 1024 * 1024, "1000000000\n", 0],
        upload: true,
        forwards: 20,
      };
      const lines = stdout.trimEnd().split("\n");
      expect(lines.map((line) => JSON.parse(line))).toEqual([checks, checks]);
    }, 180_000);
  },
);
