/** Largest unit first, so that formatting takes the shortest form. */
const BINARY_UNITS = [
  ["Ti", 1024 ** 4],
  ["Gi", 1024 ** 3],
  ["Mi", 1024 ** 2],
  ["Ki", 1024],
] as const;

const FACTOR_OF: ReadonlyMap<string, number> = new Map<string, number>([
  ...BINARY_UNITS,
  ["T", 1000 ** 4],
  ["G", 1000 ** 3],
  ["M", 1000 ** 2],
  ["k", 1000],
  ["", 1],
]);

/** The whole number behind a Kubernetes quantity: "64Ki", "1.5Mi", "10k", "1e3". Throws RangeError. */
export function parseQuantity(text: string): number {
  const [, number, exponent, unit] = /^(\d+(?:\.\d+)?)(?:[eE](\d{1,2}))?([A-Za-z]*)$/.exec(text) ?? [];
  const factor = FACTOR_OF.get(unit ?? "");
  // Kubernetes has no unit behind an exponent either.
  if (number === undefined || factor === undefined || (exponent !== undefined && unit !== "")) {
    throw new RangeError(`${JSON.stringify(text)} is not a quantity`);
  }
  const value = Number(number) * factor * 10 ** Number(exponent ?? 0);
  if (!Number.isSafeInteger(value)) {
    throw new RangeError(`${JSON.stringify(text)} is not a whole number`);
  }
  return value;
}

/** 65536 -> "64Ki"; the plain number where no unit divides it. */
export function formatQuantity(value: number): string {
  const unit = BINARY_UNITS.find(([, factor]) => value >= factor && value % factor === 0);
  return unit === undefined ? String(value) : `${value / unit[1]}${unit[0]}`;
}
