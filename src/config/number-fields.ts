import type { Field } from "@sluice/client/internal/config/field";
import { type AsOf, declare, type FieldOptions, type Given } from "@sluice/client/internal/config/fields";
import { formatQuantity, parseQuantity } from "@sluice/client/internal/config/quantity";
import { describe } from "@sluice/client/internal/config/section";

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
/** time.Duration's limit, about 292 years. The lowest value is one further from zero. */
const MAX_NANOSECONDS = 2n ** 63n - 1n;
/** A number with more digits exceeds every duration or, after the point, is below a nanosecond. */
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

/** Exact: with binary fractions 1.001 s would become 1000 ms. Drops fractions of a nanosecond. */
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

interface NumberOptions<T> extends FieldOptions {
  readonly default?: T;
  /** The smallest and largest accepted value. */
  readonly from: T;
  readonly to: T;
}

interface Unit {
  readonly type: string;
  readonly example: string;
  readonly parse: (text: string) => number;
  readonly format: (value: number) => string;
}

const COUNT: Unit = {
  type: "count",
  example: 'a whole number such as 1000 or "10k"',
  parse: parseQuantity,
  format: String,
};
const BYTES: Unit = {
  type: "bytes",
  example: 'a number of bytes such as 65536 or "64Ki"',
  parse: parseQuantity,
  format: formatQuantity,
};
const DURATION: Unit = {
  type: "duration",
  example: 'a duration such as "30s" or "4h0m0s"',
  parse: parseDuration,
  format: formatDuration,
};

const QUANTITY_PATTERN = "^[0-9]+(\\.[0-9]+)?([eE][0-9]{1,2}|Ki|Mi|Gi|Ti|k|M|G|T)?$";
const DURATION_PATTERN = "^[+-]?(0|(([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$";

/**
 * A whole number, as a number or a quantity: 1000, "10k". `or` is another word that is accepted.
 */
export function count<const O extends NumberOptions<number | string> & { readonly or?: string }>(
  sentence: string,
  options: O,
): Field<Given<O, number | WordOf<O>>, AsOf<O>> {
  return quantity(sentence, options, COUNT);
}

type WordOf<O> = O extends { readonly or: infer Word extends string } ? Word : never;

/** Bytes: 65536 or "64Ki". */
export function bytes<const O extends NumberOptions<number | string>>(
  sentence: string,
  options: O,
): Field<Given<O, number>, AsOf<O>> {
  return quantity(sentence, options, BYTES);
}

/**
 * A duration in milliseconds: "30s", "4h0m0s". A bare number is refused, because it has no unit.
 */
export function duration<const O extends NumberOptions<string>>(
  sentence: string,
  options: O,
): Field<Given<O, number>, AsOf<O, "*Ms">> {
  const [min, max] = [parseDuration(options.from), parseDuration(options.to)];
  return declare(sentence, {
    as: "*Ms",
    ...options,
    ...rangeOf(DURATION, min, max),
    type: DURATION.type,
    schema: { type: "string", pattern: DURATION_PATTERN },
    placeholder: "DURATION",
    fromFlag: (text) => {
      if (parseDuration(text) < 0) throw new RangeError("must not be negative");
      return text;
    },
    fallback: options.default === undefined ? undefined : parseDuration(options.default),
    read: (section, name) =>
      section.parsed(name, (value) => {
        if (typeof value !== "number") return numberOf(value, DURATION, min, max);
        const meant = Number.isInteger(value) && value >= 0 ? `; did you mean "${value}s"?` : "";
        throw new RangeError(
          `must be a duration with its unit such as "30s", got ${describe(value)}${meant}`,
        );
      }),
  });
}

function quantity<Value, As extends string>(
  sentence: string,
  options: NumberOptions<number | string> & { readonly or?: string },
  unit: Unit,
): Field<Value, As> {
  const numberIn = (value: number | string) => (typeof value === "number" ? value : parseQuantity(value));
  const [min, max] = [numberIn(options.from), numberIn(options.to)];
  const { default: usual, or: word } = options;
  return declare(sentence, {
    ...options,
    ...rangeOf(unit, min, max),
    type: word === undefined ? unit.type : `${unit.type}, or \`${word}\``,
    schema: {
      anyOf: [
        { type: "integer", minimum: min, maximum: max },
        { type: "string", pattern: QUANTITY_PATTERN },
        ...(word === undefined ? [] : [{ const: word }]),
      ],
    },
    placeholder: word === undefined ? "N" : `N|${word}`,
    fromFlag: (text) => {
      if (text === word || (/^\d{1,10}$/.test(text) && Number(text) >= min))
        return text === word ? text : Number(text);
      const least = min === 0 ? "" : ` of at least ${min}`;
      throw new RangeError(`must be a whole number${least}, got ${JSON.stringify(text.slice(0, 80))}`);
    },
    fallback: usual === undefined || usual === word ? usual : numberIn(usual),
    read: (section, name) =>
      section.parsed(name, (value) => (value === word ? value : numberOf(value, unit, min, max))),
  });
}

function rangeOf({ format }: Unit, min: number, max: number): { range: string } {
  return { range: `${format(min)} to ${format(max)}` };
}

function numberOf(value: unknown, { example, parse, format }: Unit, min: number, max: number): number {
  if (typeof value !== "string" && typeof value !== "number") {
    throw new RangeError(`must be ${example}, got ${describe(value)}`);
  }
  let number: number;
  try {
    number = typeof value === "number" ? value : parse(value);
  } catch (reason) {
    throw new RangeError(`must be ${example}: ${(reason as Error).message}`);
  }
  if (!Number.isInteger(number)) throw new RangeError(`must be ${example}, got ${describe(value)}`);
  if (number < min || number > max) {
    throw new RangeError(`must be between ${format(min)} and ${format(max)}, got ${describe(value)}`);
  }
  return number;
}
