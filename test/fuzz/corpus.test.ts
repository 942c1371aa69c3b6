import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { search } from "../support/fuzz/search.ts";
import { fuzzTargets } from "../support/fuzz/targets.ts";

const [wanted, seconds] = (process.env.SLUICE_FUZZ ?? "").split(":");
const targets = Object.entries(fuzzTargets).filter(([name]) => wanted === "" || name === wanted);

describe.each(targets)("fuzz target %s", (name, target) => {
  const folder = path.resolve(import.meta.dirname, "corpus", name);
  const files = existsSync(folder) ? readdirSync(folder).toSorted() : [];
  const corpus = files.map((file) => readFileSync(path.join(folder, file)));

  it("takes its seeds and every input of its corpus", async () => {
    for (const [index, input] of [...corpus, ...target.seeds].entries())
      await expect((async () => target.run(input))(), files[index] ?? "a seed").resolves.toBeUndefined();
  });

  it("takes what a short search finds", async () => {
    const { inputs, blocks, finding } = await search(target, corpus, {
      seconds: 20,
      maxInputs: 50,
      seed: 1,
    });
    expect(finding).toBeUndefined();
    expect(inputs).toBe(50);
    expect(blocks).toBeGreaterThan(0);
  }, 120_000);

  if (wanted !== name) return;
  it(
    `finds nothing in ${seconds} s`,
    async () => {
      const result = await search(target, corpus, { seconds: Number(seconds) });
      mkdirSync(folder, { recursive: true });
      const keep = (kind: string, input: Buffer): void => {
        const hash = createHash("sha256").update(input).digest("hex").slice(0, 16);
        writeFileSync(path.join(folder, `${kind}-${hash}`), input);
      };
      for (const input of result.interesting) keep("reaches", input);
      console.log(
        `${name}: ${result.inputs} inputs, ${result.blocks} blocks, ${result.interesting.length} kept`,
      );
      if (result.finding !== undefined) keep("fails", result.finding.input);
      expect(result.finding?.error).toBeUndefined();
    },
    (Number(seconds) + 60) * 1_000,
  );
});

it("fails on a target that fails, and finds it by what runs", async () => {
  const magic = Buffer.from("open sesame");
  const target = {
    run: (bytes: Buffer) => {
      if (bytes.includes(magic.subarray(0, 4)) && bytes.includes(magic)) throw new Error("found");
    },
    words: ["open", " sesame", "other"],
    seeds: [Buffer.from("closed")],
  };
  const { finding } = await search(target, [], { seconds: 20, seed: 1 });
  expect(String(finding?.error)).toBe("Error: found");
});
