import { expect, it, onTestFinished } from "vitest";
import { watchDescriptors } from "../../../src/app/descriptor-watch.ts";

// The bound under test.
const DESCRIPTOR_LOG_MS = 60_000;

it("a process without descriptors says so once for a minute, and again after it", async () => {
  const lines: object[] = [];
  const state = { nowMs: 0, tries: 0, code: "EMFILE" };
  const watch = watchDescriptors({
    logger: { error: (fields) => void lines.push(fields) },
    checkMs: 1,
    nowMs: () => state.nowMs,
    tryOpen: async () => {
      state.tries += 1;
      if (state.code !== "") throw Object.assign(new Error("open"), { code: state.code });
    },
  });
  onTestFinished(() => watch.stop());
  const triesMore = async () => {
    const { tries } = state;
    await expect.poll(() => state.tries, { interval: 1 }).toBeGreaterThan(tries + 3);
  };
  await triesMore();
  expect(lines).toEqual([{ code: "EMFILE", problem: expect.stringContaining("ulimit -n") }]);
  state.nowMs = DESCRIPTOR_LOG_MS;
  await triesMore();
  expect(lines).toHaveLength(2);
  for (const code of ["", "ENOENT"]) {
    state.code = code;
    state.nowMs += DESCRIPTOR_LOG_MS;
    await triesMore();
  }
  expect(lines).toHaveLength(2);
});
