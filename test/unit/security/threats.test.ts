import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readThreats } from "../../support/threats.ts";
import { problemOf } from "../../support/threats-reporter.ts";

const threats = readThreats();

describe("threats", () => {
  it("are all there, from T1 on, none twice", () => {
    expect(threats.length).toBeGreaterThanOrEqual(32);
    expect(threats.map(({ name }) => name)).toEqual(threats.map((_, index) => `T${index + 1}`));
  });

  it.each(threats)("$name is held off by files that exist, or does not apply", ({ tests, text }) => {
    if (tests.length === 0) expect(text).toContain("does not apply: ");
    for (const { file } of tests) expect(existsSync(file), `${file} exists`).toBe(true);
  });
});

describe("a test that a threat names", () => {
  const named = { file: "a.test.ts", title: "is refused" };
  const ran = (fullName: string, state: "passed" | "failed" | "skipped") =>
    ({ fullName, result: () => ({ state }) }) as Parameters<typeof problemOf>[1] extends
      | readonly (infer Test)[]
      | undefined
      ? Test
      : never;

  it("has run and passed, each one of that title", () => {
    expect(problemOf(named, [ran("a > is refused 1", "passed"), ran("a > other", "failed")])).toBeUndefined();
    expect(problemOf({ file: "a.test.ts", title: "" }, [ran("a > x", "passed")])).toBeUndefined();
  });

  it.each(["failed", "skipped"] as const)("has not, when one of that title was %s", (state) => {
    const problem = problemOf(named, [ran("a > is refused 1", "passed"), ran("a > is refused 2", state)]);
    expect(problem).toBe(`${state} in a.test.ts: a > is refused 2`);
  });

  it("may be skipped where it needs a real part, and not fail", () => {
    const real = { file: "test/real/a.test.ts", title: "is refused" };
    expect(problemOf(real, [ran("a > is refused", "skipped")])).toBeUndefined();
    expect(problemOf(real, [ran("a > is refused", "failed")])).toBe(
      "failed in test/real/a.test.ts: a > is refused",
    );
  });

  it.each([[[]], [undefined]])("has not, when it is not there (%s)", (tests) => {
    expect(problemOf(named, tests)).toBe("a.test.ts has no test: is refused");
  });
});
