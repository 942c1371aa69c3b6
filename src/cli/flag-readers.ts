import { accessSync, constants, statSync } from "node:fs";
import { dirname } from "node:path";
import { parseQuantity } from "@sluice/client/internal/config/quantity";
import { systemErrorReason } from "@sluice/client/internal/config/system-error";
import { parseDuration } from "../config/number-fields.ts";
import { UsageError } from "./command.ts";

/** The longest time that a Node timer accepts. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** A whole number, or a Kubernetes quantity such as `32Ki`, in a range. */
export function quantityBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = parsed(parseQuantity, text);
    if (value !== undefined && value >= min && value <= max) return value;
    throw new RangeError(`must be a whole number between ${min} and ${max}`);
  };
}

/** A whole number of at most `digits` digits. */
export function countFrom(min: number, digits = 6): (text: string) => number {
  return (text) => {
    if (/^\d+$/.test(text) && text.length <= digits && Number(text) >= min) return Number(text);
    throw new RangeError(`must be a number from ${min} to ${"9".repeat(digits)}`);
  };
}

/** One of several parts: `I/N`, counted from 0. */
export function loadPart(text: string): { readonly index: number; readonly of: number } {
  const [, index, of] = /^(\d{1,5})\/(\d{1,5})$/.exec(text) ?? [];
  if (of !== undefined && Number(index) < Number(of)) return { index: Number(index), of: Number(of) };
  throw new RangeError("must be I/N, I from 0 and below N");
}

const MAX_START_WAIT_MS = 24 * 3_600_000;

/** Milliseconds since 1970: an RFC 3339 time, or `+DURATION` from now. */
export function startTime(text: string): number {
  const afterMs = text.startsWith("+") ? parsed(parseDuration, text.slice(1)) : undefined;
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const atMs = isTime ? Date.parse(text) : Date.now() + (afterMs ?? Number.NaN);
  if (Math.abs(atMs - Date.now()) <= MAX_START_WAIT_MS) return atMs;
  throw new RangeError('must be a time such as 2026-01-31T12:00:00Z, or "+1m", within a day');
}

/** A file to write after a run of minutes, or `-`. Refuses one that cannot be written before the run. */
export function reportFile(text: string): string {
  if (text === "-") return text;
  const about = statSync(text, { throwIfNoEntry: false });
  if (about?.isDirectory()) throw new RangeError("is a directory");
  try {
    accessSync(about === undefined ? dirname(text) : text, constants.W_OK);
  } catch (error) {
    throw new RangeError(`cannot be written: ${systemErrorReason(error)}`);
  }
  return text;
}

/** Parses a duration into milliseconds. */
export function durationFrom(minMs: number): (text: string) => number {
  return (text) => {
    const value = parsed(parseDuration, text);
    if (value !== undefined && value >= minMs) return value;
    throw new RangeError(
      `must be a duration such as "2s"${value === undefined ? "" : `, from ${minMs}ms on`}`,
    );
  };
}

/** Keys as Docker and kubectl write them, such as `ctrl-p,ctrl-q` or `a`: the bytes that a terminal sends. */
export function detachKeys(text: string): Buffer {
  const keys = text === "" ? [] : text.split(",");
  return Buffer.from(
    keys.map((key) => {
      if (/^[\x20-\x7e]$/.test(key)) return key.charCodeAt(0);
      const [, letter] = /^ctrl-([a-z@[\\\]^_])$/.exec(key) ?? [];
      if (letter !== undefined) return letter.toUpperCase().charCodeAt(0) & 0x1f;
      throw new RangeError("must be keys such as ctrl-p,ctrl-q");
    }),
  );
}

export function listenPort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new RangeError("must be a port between 0 (any free one) and 65535");
}

export function remotePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535) return Number(text);
  throw new RangeError("must be between 1 and 65535");
}

function parsed(parse: (text: string) => number, text: string): number | undefined {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

type Values = Readonly<Record<string, unknown>>;

/** The names of the flags that were given; a flag with a default always counts as given. */
export function givenOf<V extends Values>(
  values: V,
  names: readonly (keyof V & string)[],
): readonly string[] {
  return names.filter((name) => {
    const value: unknown = values[name];
    return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
  });
}

/** Refuses flags that would have no effect, because the user expected one. Throws UsageError. */
export function refuseIgnored<V extends Values>(
  values: V,
  about: string,
  ignored: readonly (keyof V & string)[],
): void {
  const [first] = givenOf(values, ignored);
  if (first !== undefined)
    throw new UsageError(`--${first} does not apply to ${about}`, { showsUsage: true });
}

/** Milliseconds: a duration, or whole seconds, like client-go's ParseTimeout. 0 means none. */
export function requestTimeout(text: string): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : parsed(parseDuration, text);
  if (value !== undefined && value >= 0 && value <= MAX_TIMER_MS) return value;
  throw new RangeError("must be whole seconds, or a duration such as 1s, 2m or 3h");
}
