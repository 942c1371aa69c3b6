import { describe, expect, it } from "vitest";
import { expandCommand } from "../../../src/probes/probe-target.ts";
import { cpuMsOf } from "../../support/cpu-time.ts";

const environment = [
  { name: "A", value: "1" },
  { name: "A$(B", value: "2" },
];

describe("a probe's command", () => {
  it.each([
    ["$(A)", "1"],
    ["x$(A)y$(A", "x1y$(A"],
    ["$$(A)", "$(A)"],
    ["$(A$(B)", "2"],
    ["$(NONE)", "$(NONE)"],
    ["a)$$b$(", "a)$b$("],
    ["$$$$", "$$"],
  ])("%s becomes %s", (written, expanded) => {
    expect(expandCommand([written], environment)).toEqual([expanded]);
  });

  it("is expanded in time that grows as it does, however many names are begun", () => {
    const timeOf = (times: number): number => {
      const command = ["$(".repeat(times)];
      return cpuMsOf(() => expandCommand(command, environment));
    };
    const leastOf = (times: number): number => Math.min(...Array.from({ length: 9 }, () => timeOf(times)));
    leastOf(1_000);
    // Both at once can be slow on a busy machine; what grows faster never passes.
    let ratio = Number.POSITIVE_INFINITY;
    for (let attempt = 0; attempt < 5 && ratio >= 2.3 ** 2; attempt++)
      ratio = leastOf(400_000) / leastOf(100_000);
    expect(ratio).toBeLessThan(2.3 ** 2);
  });
});
