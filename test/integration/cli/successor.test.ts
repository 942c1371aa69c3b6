import { expect, it, onTestFinished, vi } from "vitest";
import { Lineage, startSuccessor } from "../../../src/app/runtime/inheritance.ts";

/** A program that never serves, in place of this one. */
function programThatWaits(): void {
  const { argv } = process;
  process.argv = ["node", "-e", "setTimeout(() => {}, 1e9)"];
  onTestFinished(() => {
    process.argv = argv;
  });
}

vi.setConfig({ testTimeout: 60_000 });
const running = new AbortController().signal;

it("does not serve in time, and is killed", async () => {
  programThatWaits();
  await expect(startSuccessor(new Lineage(), running, 300)).rejects.toThrow("it did not serve within 300 ms");
});

it("is given up when this program ends", async () => {
  programThatWaits();
  const ending = new AbortController();
  const starting = startSuccessor(new Lineage(), ending.signal);
  ending.abort();
  await expect(starting).rejects.toThrow("this program ends");
});
