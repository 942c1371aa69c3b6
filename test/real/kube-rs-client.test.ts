import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";

const { SLUICE_PARTS_DIR: parts = path.join(homedir(), ".cache/sluice/real-parts") } = process.env;
const program = path.join(parts, "kube-rs/debug/kube-rs-client");
const isMissing = !existsSync(program);
const needs = isMissing ? " (needs cargo build in test/real/rust, with that folder's CARGO_TARGET_DIR)" : "";

describe.skipIf(isMissing)(`Rust's kube-rs by rustls${needs}`, () => {
  let demo: RunningDemo;
  beforeAll(async () => {
    demo = await startDemo();
  }, 60_000);
  afterAll(() => demo?.stop());

  it("has exit codes, input to its end, 5 MB each way and 20 forwards of pods on nodes of both kinds", async () => {
    const words = [demo.kubeconfig, "web", "web-ws"];
    const { stdout } = await promisify(execFile)(program, words, { timeout: 110_000 });
    const checks = {
      exit_code: ["out\n", "err\n", 3],
      download: [5 * 1024 * 1024, "1000000000\n", 0],
      upload: true,
      forwards: 20,
    };
    const lines = stdout.trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual([checks, checks]);
  }, 120_000);
});
