import { describe, expect, it } from "vitest";
import { parseWorkers } from "../../../src/config/workers.ts";

describe("--workers", () => {
  it.each([
    ["1", 1],
    ["256", 256],
    ["auto", "auto"],
  ])("%s", (text, workers) => {
    expect(parseWorkers(text)).toEqual({ workers });
  });

  it.each([
    "0",
    "257",
    "1000",
    "-1",
    "1.5",
    "two",
    "",
    "9".repeat(1_000),
  ])("is no number of workers: %s", (text) => {
    const result = parseWorkers(text);
    expect(result).toMatchObject({
      problem: expect.stringMatching(/^must be a number between 1 and 256, or auto, got "/),
    });
    expect(JSON.stringify(result).length).toBeLessThan(200);
  });
});
