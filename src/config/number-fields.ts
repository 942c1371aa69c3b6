import type { Field } from "@sluice/client/internal/config/field";
import { type AsOf, declare, type FieldOptions, type Given } from "@sluice/client/internal/config/fields";
import { formatQuantity, parseQuantity } from "@sluice/client/internal/config/quantity";
import { describe } from "@sluice/client/internal/config/section";
import { formatDuration, parseDuration } from "./duration.ts";

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

/** A whole number, as a number or quantity: 1000, "10k". `or` is an additional accepted word. */
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
