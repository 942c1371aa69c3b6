import { parseLogTime } from "@sluice/client/internal/api/pod-log-options";
import { expect, it } from "vitest";
import { LogLines, LogPosition } from "../../../../src/cli/client/container-log.ts";

// The bound under test.
const MAX_LOG_LINE_BYTES = 1024 * 1024;

const LOG = [
  "2026-01-01T00:00:00.000000001Z a",
  "2026-01-01T00:00:00.500000000Z b",
  "2026-01-01T00:00:01.250000000Z c",
  "2026-01-01T00:00:01.250000000Z d, at the time of c",
  "2026-01-01T00:00:01.249999999Z e, before c: two streams",
  "2026-01-01T00:00:01.900000000Z f",
  "2026-01-01T00:00:05.000000000Z g",
];

/** What a server answers that knows whole seconds only, as Kubernetes passes them on. */
function since(time: string | undefined): readonly string[] {
  const from = time === undefined ? 0 : (parseLogTime(time)?.seconds ?? Number.NaN);
  return LOG.filter((line) => (parseLogTime(line.slice(0, 30))?.seconds ?? 0) >= from);
}

it.each([...LOG.keys()])("a log that breaks off behind line %s, and again, repeats and loses none", (cut) => {
  const position = new LogPosition();
  const printed: string[] = [];
  const read = (lines: readonly string[]): void => {
    for (const line of lines) {
      const time = parseLogTime(line.slice(0, 30));
      if (time !== undefined && position.isNew(time)) printed.push(line);
    }
  };
  read(LOG.slice(0, cut));
  // The second connection ends within what it repeats.
  read(since(position.readAgain()).slice(0, 1));
  read(since(position.readAgain()));
  expect(printed).toEqual(LOG);
});

it("a log whose repeated lines are gone by rotation loses none of the new ones", () => {
  const position = new LogPosition();
  for (const time of ["2026-01-01T00:00:01.1Z", "2026-01-01T00:00:01.2Z"]) position.isNew(timeOf(time));
  expect(position.readAgain()).toBe("2026-01-01T00:00:01Z");
  expect(position.isNew(timeOf("2026-01-01T00:00:01.3Z"))).toBe(true);
});

it("lines are whole however reads cut them, and keep what they are", () => {
  const text = Buffer.from(`${LOG.join("\n")}\nno time\nlast, \u{1F600}`);
  for (let size = 1; size < 50; size += 1) {
    const lines = new LogLines();
    const seen: Buffer[] = [];
    for (let at = 0; at < text.byteLength; at += size) {
      for (const { stamped } of lines.push(text.subarray(at, at + size))) seen.push(stamped);
    }
    expect(seen.length).toBe(LOG.length + 1);
    for (const { stamped } of lines.end()) seen.push(stamped);
    expect(Buffer.concat(seen).equals(text)).toBe(true);
    expect(seen.length).toBe(LOG.length + 2);
  }
});

it("a line past its bound comes in parts, of which the first has the time", () => {
  const lines = new LogLines();
  const long = Buffer.from(
    `2026-01-01T00:00:00Z ${"x".repeat(3 * MAX_LOG_LINE_BYTES)}\n2026-01-01T00:00:01Z y\n`,
  );
  const seen: [boolean, boolean, number][] = [];
  for (let at = 0; at < long.byteLength; at += 65_536) {
    for (const { time, isContinued, text } of lines.push(long.subarray(at, at + 65_536))) {
      seen.push([time !== undefined, isContinued, text.byteLength]);
    }
  }
  expect(lines.isInside).toBe(false);
  expect(seen.map(([hasTime, isContinued]) => [hasTime, isContinued])).toEqual([
    [true, false],
    ...seen.slice(1, -1).map(() => [false, true]),
    [true, false],
  ]);
  expect(seen.slice(0, -1).reduce((sum, [, , bytes]) => sum + bytes, 0)).toBe(3 * MAX_LOG_LINE_BYTES + 1);
});

function timeOf(text: string) {
  const time = parseLogTime(text);
  if (time === undefined) expect.unreachable(text);
  return time;
}
