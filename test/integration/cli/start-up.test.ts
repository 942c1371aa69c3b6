import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import * as nodeModule from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { builtProgram } from "../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";

/** Writes what the program loaded as the last line of its standard error. */
const REPORT = `
  process.on("exit", () => {
    const files = Object.keys(require.cache).filter((file) => file !== __filename);
    const parts = process.moduleLoadList.map((part) => part.replace(/^NativeModule /, ""));
    process._rawDebug(JSON.stringify({ files, parts }));
  });
`;
/** Parts of Node.js that cost milliseconds each. */
const COSTLY = [
  "http2",
  "zlib",
  "worker_threads",
  "child_process",
  "v8",
  "http",
  "https",
  "internal/deps/undici/undici",
];

interface Loaded {
  readonly files: readonly string[];
  readonly parts: readonly string[];
}

describe("what the built program loads", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-start-"));
  const report = path.join(folder, "report.cjs");
  let demo: RunningDemo;
  beforeAll(async () => {
    writeFileSync(report, REPORT);
    demo = await startDemo();
  }, 60_000);
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await demo.stop();
  });

  const loadedBy = (...args: readonly string[]): Loaded & { readonly stdout: string } => {
    const program = ["--require", report, builtProgram(), ...args];
    const { stdout, stderr } = spawnSync(process.execPath, program, {
      env: { PATH: process.env.PATH, HOME: folder, KUBECONFIG: demo.kubeconfig },
      encoding: "utf8",
    });
    const last = stderr.trimEnd().split("\n").at(-1) ?? "";
    return { ...(JSON.parse(last) as Loaded), stdout };
  };
  const costly = ({ parts }: Loaded) => COSTLY.filter((part) => parts.includes(part));

  it("is three files for --version, and no network", () => {
    const loaded = loadedBy("--version");
    expect(loaded.files.map((file) => path.basename(file)).toSorted()).toEqual([
      "rolldown-runtime.cjs",
      "sluice.cjs",
      "start.cjs",
    ]);
    expect([...costly(loaded), ...loaded.parts.filter((part) => part === "tls")]).toEqual([]);
  });

  it("is a few files for exec, and no part of Node.js that it does not need", () => {
    const loaded = loadedBy("exec", "web", "--", "echo", "it works");
    expect(loaded.stdout).toBe("it works\n");
    expect(loaded.files.length).toBeLessThanOrEqual(6);
    expect(costly(loaded)).toEqual([]);
  });

  it("is kept compiled for the next exec, all of it", ({ skip }) => {
    skip(!("enableCompileCache" in nodeModule), "Node.js before 22.8 keeps nothing compiled");
    const { files } = loadedBy("exec", "web", "--", "true");
    const [own, ...others] = readdirSync(path.join(folder, ".cache/sluice/compiled"));
    expect(others).toEqual([]);
    const kept = readdirSync(path.join(folder, ".cache/sluice/compiled", own ?? ""));
    // What is loaded to find the command is not: sluice.cjs, rolldown-runtime.cjs, start.cjs.
    expect(kept.length).toBe(files.length - 3);
  });
});
