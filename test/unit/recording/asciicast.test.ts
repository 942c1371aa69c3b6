import { describe, expect, it } from "vitest";
import {
  DEFAULT_SIZE,
  EventLines,
  headerLine,
  parseEvent,
  parseHeader,
} from "../../../src/recording/format/asciicast.ts";
import { FACTS } from "../../support/recording/recorded-facts.ts";

describe("a header", () => {
  it("is an asciicast v3 of the terminal, with the session's facts", () => {
    const header = parseHeader(headerLine(FACTS, { columns: 132, rows: 43 }));
    expect(header).toEqual({
      version: 3,
      term: { cols: 132, rows: 43 },
      timestamp: 1_795_377_600,
      command: "sh -l",
      title: "prod/api-7d/main by ana",
      sluice: FACTS,
    });
  });

  it("has the same length for every size", () => {
    const lengths = [DEFAULT_SIZE, { columns: 1, rows: 65_535 }, { columns: 0, rows: 0 }].map(
      (size) => headerLine(FACTS, size).length,
    );
    expect(new Set(lengths).size).toBe(1);
  });
});

describe("events", () => {
  it("have intervals whose sum is the rounded time, and that are never negative", () => {
    const lines = new EventLines();
    const times = [0.4, 1.5, 2.4, 2.4, 1, 1_000.6, 3_600_000];
    const parsed = times.map((time) => parseEvent(lines.line(time, "o", "x")));
    expect(parsed.map((event) => event?.interval)).toEqual([0, 0.002, 0, 0, 0, 0.999, 3598.999]);
  });

  it("escape what JSON strings cannot contain", () => {
    const data = '\u001b[1mé\u0000\u2028"\\\ud800';
    const line = new EventLines().line(0, "o", data);
    expect(Array.from(line).every((character) => character >= " ")).toBe(true);
    expect(parseEvent(line)).toEqual({ interval: 0, code: "o", data });
  });

  it.each([
    "",
    "# sluice {}",
    "{}",
    "[1]",
    "[1, 2, 3]",
    '["1", "o", "x"]',
    '[0, "o", "x"',
  ])("are not: %s", (line) => {
    expect(parseEvent(line)).toBeUndefined();
  });
});
