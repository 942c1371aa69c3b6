import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { CLIENT_CHECKS, checksIn } from "./client-checks.ts";

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
    expect(checksIn(stdout)).toEqual([CLIENT_CHECKS, CLIENT_CHECKS]);
  }, 120_000);
});
