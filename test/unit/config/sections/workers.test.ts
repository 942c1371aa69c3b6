import { describe, expect, it } from "vitest";
import { defaultConfiguration } from "../../../../src/config/configuration.ts";

describe("--workers", () => {
  it.each([
    ["1", 1],
    ["256", 256],
    ["auto", "auto"],
  ])("%s", (text, workers) => {
    expect(defaultConfiguration({ workers: text }).workers).toBe(workers);
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
  ])("is no number of workers: %s", (workers) => {
    expect(() => defaultConfiguration({ workers })).toThrow(
      /^--workers: must be a number between 1 and 256, or auto, got ".{0,80}"$/,
    );
  });
});
