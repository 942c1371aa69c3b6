import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { fuzzTargets } from "../support/fuzz/targets.ts";

const root = path.resolve(import.meta.dirname, "../..");
const layout = path.join(import.meta.dirname, "oss-fuzz");
const built = path.join(import.meta.dirname, "built");
const names = Object.keys(fuzzTargets);

/** What OSS-Fuzz' builder has on its path: npm is not asked for packages, and the compiler and zip record what they are given. */
const PROGRAMS = {
  npm: 'echo "npm $*" >>"$RECORD"',
  compile_javascript_fuzzer: 'test -f "$2" && echo "compile $*" >>"$RECORD"',
  zip: 'shift; test -n "$(ls -A)" && echo "zip $1" >>"$RECORD"',
};
let folder: string;
let record: string[];

beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "sluice-oss-fuzz-"));
  const bin = path.join(folder, "bin");
  mkdirSync(bin);
  for (const [name, script] of Object.entries(PROGRAMS)) {
    writeFileSync(path.join(bin, name), `#!/bin/bash -eu\n${script}\n`);
    chmodSync(path.join(bin, name), 0o755);
  }
  const file = path.join(folder, "record");
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, OUT: folder, RECORD: file };
  execFileSync(path.join(layout, "build.sh"), { cwd: root, env });
  record = readFileSync(file, "utf8").trim().split("\n");
}, 120_000);

afterAll(() => {
  for (const made of [folder, built]) rmSync(made, { recursive: true });
});

it("builds every target, those that return no promise with --sync, and zips its corpus", () => {
  expect(record.slice(0, 2)).toEqual(["npm ci --ignore-scripts", "npm install --save-dev @jazzer.js/core"]);
  expect(record.filter((line) => line.startsWith("compile"))).toEqual(
    names.map(
      (name) =>
        `compile sluice test/fuzz/built/fuzz_${name}.js${fuzzTargets[name]?.isAsync ? "" : " --sync"}`,
    ),
  );
  expect(record.filter((line) => line.startsWith("zip"))).toEqual(
    names.map((name) => `zip ${folder}/fuzz_${name}_seed_corpus.zip`),
  );
});

it.each(
  names,
)("fuzz_%s takes its corpus under plain Node.js, and returns a promise only if it says so", (name) => {
  const corpus = path.join(built, `fuzz_${name}_seed_corpus`);
  expect(readdirSync(corpus).length).toBeGreaterThanOrEqual(fuzzTargets[name]?.seeds.length ?? 1);
  const program = `
    const { readdirSync, readFileSync } = require("node:fs");
    const { fuzz } = require(${JSON.stringify(path.join(built, `fuzz_${name}.js`))});
    (async () => {
      let promises = 0;
      for (const file of readdirSync(".")) {
        const result = fuzz(new Uint8Array(readFileSync(file)));
        if (result instanceof Promise) promises += 1;
        await result;
      }
      console.log(promises > 0);
    })();`;
  const said = execFileSync(process.execPath, ["-e", program], { cwd: corpus, encoding: "utf8" });
  expect(said.trim()).toBe(String(fuzzTargets[name]?.isAsync === true));
}, 60_000);

it("describes itself as OSS-Fuzz reads it", () => {
  expect(parse(readFileSync(path.join(layout, "project.yaml"), "utf8"))).toEqual({
    language: "javascript",
    fuzzing_engines: ["libfuzzer"],
    sanitizers: ["none"],
  });
  const dockerfile = readFileSync(path.join(layout, "Dockerfile"), "utf8");
  expect(dockerfile).toContain("FROM gcr.io/oss-fuzz-base/base-builder-javascript\n");
  expect(dockerfile).toContain("COPY test/fuzz/oss-fuzz/build.sh $SRC/\n");
});
