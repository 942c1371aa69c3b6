import { parseDuration } from "../config/duration.ts";
import { parseQuantity } from "../config/quantity.ts";

/** A whole number, or a Kubernetes quantity such as `32Ki`, in a range. */
export function quantityBetween(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = parsed(parseQuantity, text);
    if (value !== undefined && value >= min && value <= max) return value;
    throw new RangeError(`must be a whole number between ${min} and ${max}`);
  };
}

export function countFrom(min: number): (text: string) => number {
  return (text) => {
    if (/^\d{1,6}$/.test(text) && Number(text) >= min) return Number(text);
    throw new RangeError(`must be a number from ${min} to 999999`);
  };
}

export function ratePerSecond(text: string): number {
  const value = Number(text);
  if (text !== "" && Number.isFinite(value) && value >= 0) return value;
  throw new RangeError("must be a number per second");
}

/** Milliseconds. */
export function durationFrom(minMs: number): (text: string) => number {
  return (text) => {
    const value = parsed(parseDuration, text);
    if (value !== undefined && value >= minMs) return value;
    throw new RangeError(
      `must be a duration such as "2s"${value === undefined ? "" : `, from ${minMs}ms on`}`,
    );
  };
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
