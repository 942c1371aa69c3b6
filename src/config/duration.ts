const NANOSECONDS_OF: ReadonlyMap<string, bigint> = new Map([
  ["ns", 1n],
  ["us", 1_000n],
  ["µs", 1_000n], // U+00B5
  ["μs", 1_000n], // U+03BC
  ["ms", 1_000_000n],
  ["s", 1_000_000_000n],
  ["m", 60_000_000_000n],
  ["h", 3_600_000_000_000n],
]);

const NANOSECONDS_PER_MILLISECOND = 1_000_000n;
/** time.Duration's limit, about 292 years; the lowest value is one further from zero. */
const MAX_NANOSECONDS = 2n ** 63n - 1n;
/** More digits exceed every duration or, after the point, are below a nanosecond. */
const MAX_DIGITS = 19;

/**
 * Parses Go's duration syntax (time.ParseDuration) to milliseconds: "30s", "1h15m", "1.5s", "0".
 * Drops fractions of a millisecond. Throws RangeError with Go's message.
 */
export function parseDuration(text: string): number {
  const [, sign, rest] = /^([+-]?)(.*)$/s.exec(text) as unknown as [string, string, string];
  if (rest === "0") {
    return 0;
  }
  const quoted = JSON.stringify(text);
  let nanoseconds = 0n;
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
    nanoseconds += nanosecondsOf(number, unitNanoseconds);
    if (nanoseconds > MAX_NANOSECONDS + (sign === "-" ? 1n : 0n))
      throw new RangeError(`time: invalid duration ${quoted}`);
    left = left.slice(part.length);
  } while (left !== "");
  const milliseconds = Number(nanoseconds / NANOSECONDS_PER_MILLISECOND);
  return sign === "-" && milliseconds !== 0 ? -milliseconds : milliseconds;
}

/** Exact: binary fractions would turn 1.001 s into 1000 ms. Drops fractions of a nanosecond. */
function nanosecondsOf(number: string, unit: bigint): bigint {
  const [whole = "", fraction = ""] = number.split(".");
  const digits = whole.replace(/^0+/, "");
  if (digits.length > MAX_DIGITS) return MAX_NANOSECONDS + 2n;
  const part = fraction.slice(0, MAX_DIGITS);
  return BigInt(digits || "0") * unit + (BigInt(part || "0") * unit) / 10n ** BigInt(part.length);
}

/** Formats a duration as Go does: 14_400_000 -> "4h0m0s", 1_500 -> "1.5s", 20 -> "20ms". */
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
