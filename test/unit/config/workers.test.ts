import { describe, expect, it } from "vitest";
import { parseWorkers } from "../../../src/config/workers.ts";

describe("--workers", () => {
  it.each([
    ["1", 1],
    ["256", 256],
    ["auto", "auto"],
  ])("%s", (text, workers) => {
    expect(parseWorkers(text)).toBe(workers);
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
    expect(() => parseWorkers(text)).toThrow("must be a number between 1 and 256, or auto");
  });
});
