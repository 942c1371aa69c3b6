const NANOSECONDS_OF: ReadonlyMap<string, number> = new Map([
  ["ns", 1],
  ["us", 1_000],
  ["µs", 1_000], // U+00B5
  ["μs", 1_000], // U+03BC
  ["ms", 1_000_000],
  ["s", 1_000_000_000],
  ["m", 60_000_000_000],
  ["h", 3_600_000_000_000],
]);

const NANOSECONDS_PER_MILLISECOND = 1_000_000;

/**
 * Milliseconds of a duration in Go's syntax (time.ParseDuration), as Kubernetes' files and flags have it: "30s", "1h15m", "1.5s",
 * "0". Throws RangeError in Go's words. What is shorter than a millisecond is cut off.
 */
export function parseDuration(text: string): number {
  const [, sign, rest] = /^([+-]?)(.*)$/s.exec(text) as unknown as [string, string, string];
  if (rest === "0") {
    return 0;
  }
  const quoted = JSON.stringify(text);
  let nanoseconds = 0;
  let left = rest;
  do {
    const [part, number, unit] = /^(\d+\.?\d*|\.\d+)([^\d.]*)/.exec(left) ?? [];
    if (part === undefined || number === undefined) {
      throw new RangeError(`time: invalid duration ${quoted}`);
    }
    if (unit === undefined || unit === "") {
      throw new RangeError(`time: missing unit in duration ${quoted}`);
    }
    const unitNanoseconds = NANOSECONDS_OF.get(unit);
    if (unitNanoseconds === undefined) {
      throw new RangeError(`time: unknown unit ${JSON.stringify(unit)} in duration ${quoted}`);
    }
    nanoseconds += Number(number) * unitNanoseconds;
    left = left.slice(part.length);
  } while (left !== "");
  const milliseconds = Math.trunc(nanoseconds / NANOSECONDS_PER_MILLISECOND);
  return sign === "-" && milliseconds !== 0 ? -milliseconds : milliseconds;
}

/** Go's own form of a duration: 14_400_000 -> "4h0m0s", 1_500 -> "1.5s", 20 -> "20ms". */
export function formatDuration(milliseconds: number): string {
  if (milliseconds === 0) {
    return "0s";
  }
  if (milliseconds < 1_000) {
    return `${milliseconds}ms`;
  }
  const hours = Math.floor(milliseconds / 3_600_000);
  const minutes = Math.floor((milliseconds % 3_600_000) / 60_000);
  const seconds = `${(milliseconds % 60_000) / 1_000}s`;
  if (hours > 0) {
    return `${hours}h${minutes}m${seconds}`;
  }
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
