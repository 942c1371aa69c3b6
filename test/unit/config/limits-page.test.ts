import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { BOUND_TESTS } from "../../support/bound-tests.ts";
import { boundsIn, fixedBound } from "../../support/fixed-bound.ts";
import { withGeneratedPart } from "../../support/generated-part.ts";
import { configuredBounds, fixedBounds, limitsTables } from "../../support/limits-page.ts";

const root = new URL("../../../", import.meta.url);
const page = fileURLToPath(new URL("docs/limits.md", root));

describe("docs/limits.md", () => {
  const bounds = [...configuredBounds(), ...fixedBounds()];

  it("has the tables that `npm run docs` writes", async () => {
    const text = withGeneratedPart(readFileSync(page, "utf8"), "bounds", limitsTables());
    await expect(text).toMatchFileSnapshot(page);
  });

  it("lists every limit and time of the configuration, and the constants", () => {
    expect(bounds.filter(({ name }) => /^(?:limits|timeouts)\./.test(name)).length).toBeGreaterThan(45);
    expect(bounds.filter(({ file }) => file !== undefined).length).toBeGreaterThan(120);
  });

  it("has a value for each row, but for limits that are off", () => {
    const off = bounds.filter(({ value }) => value === "" || value === "``").map(({ name }) => name);
    expect(off.filter((name) => !name.startsWith("policy."))).toEqual([]);
  });

  it("has no row without a test in test/support/bound-tests.ts, and no test without a row", () => {
    const names = new Set(bounds.map(({ name }) => name));
    expect([...names].filter((name) => !(name in BOUND_TESTS))).toEqual([]);
    expect(Object.keys(BOUND_TESTS).filter((name) => !names.has(name))).toEqual([]);
  });

  it("names tests that exist, by words of their titles", () => {
    const missing = Object.values(BOUND_TESTS)
      .flatMap((tests) => tests.split(" | "))
      .filter((test) => {
        const [, file = "", title = ""] = /^(\S+?\.test\.ts)(?:: (.*))?$/.exec(test) ?? [];
        const path = new URL(`test/${file}`, root);
        return !existsSync(path) || !readFileSync(path, "utf8").replace(/\s+/g, " ").includes(title);
      });
    expect(missing).toEqual([]);
  });
});

describe("the bounds of a source", () => {
  it.each([
    ["/** Bytes. Past it: cut. */\nexport const MAX_BYTES: number = 64 * 1024;", "MAX_BYTES", "64 KiB"],
    ["/**\n * Long.\n * Past it none.\n */\nconst WAIT_MS = 1_500;", "WAIT_MS", "1500 ms"],
    ["/** Past it: 429. */\nconst MAX_WAITING = 1_000; // many", "MAX_WAITING", "1,000"],
    [
      "interface L {\n  /** Past it: no. */\n  readonly idleMs: number;\n}\nconst l = {\n  idleMs: 7_200_000,\n}",
      "idleMs",
      "2 h",
    ],
  ])("%j", (source, name, value) => {
    expect(boundsIn(source, "a.ts")).toMatchObject([{ name, value }]);
  });

  it("a comment without an effect, or above another line, is none", () => {
    expect(boundsIn("/** Past it: no. */\nfunction f() {}\n/** Bytes. */\nconst A = 1;", "a.ts")).toEqual([]);
  });

  it("a test reads the number of one, and of nothing that the page has not", () => {
    expect(fixedBound("src/listeners/request-turns.ts", "REQUESTS_A_TURN")).toBe(16);
    expect(() => fixedBound("src/listeners/request-turns.ts", "REQUESTS")).toThrow("0 bounds REQUESTS");
  });
});
