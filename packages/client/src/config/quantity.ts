/** Largest unit first, so that formatting finds the shortest form. */
const BINARY_UNITS = [
  ["Ti", 1024 ** 4],
  ["Gi", 1024 ** 3],
  ["Mi", 1024 ** 2],
  ["Ki", 1024],
] as const;

/** Each suffix as a power of ten and a power of two. */
const SUFFIXES: ReadonlyMap<string, readonly [tens: number, twos: number]> = new Map([
  ...["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].map((unit, at): Suffix => [unit, [3 * at - 9, 0]]),
  ...["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].map((unit, at): Suffix => [unit, [0, 10 * (at + 1)]]),
]);
type Suffix = [unit: string, powers: readonly [tens: number, twos: number]];
/** Longer than any sensible quantity; BigInt's time grows with the square of the digits. */
const MAX_QUANTITY_CHARACTERS = 100;

/**
 * The exact whole number of a Kubernetes quantity: "64Ki", "1.5Mi", "1.001k", "1e3", "3000m".
 * Throws RangeError, also for negative values and those above 2^53 - 1.
 */
export function parseQuantity(text: string): number {
  const parts =
    text.length > MAX_QUANTITY_CHARACTERS
      ? undefined
      : /^\+?(?=\.?\d)(?<whole>\d*)(?:\.(?<fraction>\d*))?(?:[eE](?<exponent>[+-]?\d+)|(?<unit>[A-Za-z]*))$/.exec(
          text,
        )?.groups;
  const { whole = "", fraction = "", exponent, unit = "" } = parts ?? {};
  const factor = SUFFIXES.get(unit);
  if (parts === undefined || factor === undefined)
    throw new RangeError(`${JSON.stringify(text)} is not a quantity`);
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const [tens, twos] = factor;
  const value = digits === "" ? 0 : shifted(digits, tens + Number(exponent ?? 0) - fraction.length, twos);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${JSON.stringify(text)} is not a whole number`);
  return value;
}

/** digits * 10^tens * 2^twos; NaN if the result is not whole, or far too large. */
function shifted(digits: string, tens: number, twos: number): number {
  if (Math.abs(tens) > MAX_QUANTITY_CHARACTERS) return Number.NaN;
  const numerator = (BigInt(digits) << BigInt(twos)) * 10n ** BigInt(Math.max(0, tens));
  const divisor = 10n ** BigInt(Math.max(0, -tens));
  return numerator % divisor === 0n ? Number(numerator / divisor) : Number.NaN;
}

/** 65536 -> "64Ki"; the plain number if no unit divides it. */
export function formatQuantity(value: number): string {
  const unit = BINARY_UNITS.find(([, factor]) => value >= factor && value % factor === 0);
  return unit === undefined ? String(value) : `${value / unit[1]}${unit[0]}`;
}
