/** A time with nanoseconds, as in log lines. */
export interface LogTime {
  readonly seconds: number;
  readonly nanoseconds: number;
}

const RFC3339 = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/;

/** RFC 3339 with any fraction of a second; undefined for other text. */
export function parseLogTime(text: string): LogTime | undefined {
  const [, whole, fraction = "", zone] = RFC3339.exec(text) ?? [];
  const milliseconds = Date.parse(`${whole}${zone}`);
  if (Number.isNaN(milliseconds)) return undefined;
  return { seconds: milliseconds / 1_000, nanoseconds: Number(fraction.padEnd(9, "0")) };
}

/**
 * Writes all nine digits in the text's own time zone, as kubelets do. Expects a text that
 * `parseLogTime` accepts.
 */
export function withNineDigits(text: string): string {
  const [, whole = "", fraction = "", zone = ""] = RFC3339.exec(text) ?? [];
  return `${whole}.${fraction.padEnd(9, "0")}${zone}`;
}

export function isBefore(left: LogTime, right: LogTime): boolean {
  return left.seconds === right.seconds ? left.nanoseconds < right.nanoseconds : left.seconds < right.seconds;
}
