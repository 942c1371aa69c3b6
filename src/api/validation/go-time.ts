import { goQuote } from "@sluice/client/internal/api/go-json";

/**
 * The parts of RFC 3339 in Go's layout `2006-01-02T15:04:05Z07:00`, with Go's name for a part that
 * is out of range.
 */
const PARTS: readonly (readonly [
  layout: string,
  pattern: RegExp,
  name?: string,
  least?: number,
  most?: number,
])[] = [
  ["2006", /^\d{4}/],
  ["-", /^-/],
  ["01", /^\d\d/, "month", 1, 12],
  ["-", /^-/],
  ["02", /^\d\d/, "day", 1, 31],
  ["T", /^T/],
  ["15", /^\d\d/, "hour", 0, 23],
  [":", /^:/],
  ["04", /^\d\d/, "minute", 0, 59],
  [":", /^:/],
  ["05", /^\d\d(?:[.,]\d+)?/, "second", 0, 59.999_999_999],
  ["Z07:00", /^(?:Z|[+-]\d\d:\d\d)/],
];

/** metav1.MicroTime's layout has exactly six fraction digits. */
const MICRO_PARTS: typeof PARTS = PARTS.flatMap((part) =>
  part[0] === "05"
    ? [
        ["05", /^\d\d/, "second", 0, 59],
        [".000000", /^[.,]\d{6}/],
      ]
    : [part],
);

/** The error of Go's `time.Parse` for a Time or MicroTime; undefined if the text is valid. */
export function goTimeProblem(value: string, format: "time" | "microtime" = "time"): string | undefined {
  const parts = format === "time" ? PARTS : MICRO_PARTS;
  const subject = `parsing time ${goQuote(value)}`;
  let rest = value;
  for (const [layout, pattern, name, least = 0, most = 0] of parts) {
    const [part] = rest.match(pattern) ?? [];
    if (part === undefined) {
      return `${subject} as ${goQuote(parts.map(([text]) => text).join(""))}: cannot parse ${goQuote(rest)} as ${goQuote(layout)}`;
    }
    const number = Number(part.replace(",", "."));
    if (name !== undefined && !(number >= least && number <= most)) return `${subject}: ${name} out of range`;
    rest = rest.slice(part.length);
  }
  if (rest !== "") return `${subject}: extra text: ${goQuote(rest)}`;
  return isOfMonth(value) ? undefined : `${subject}: day out of range`;
}

function isOfMonth(value: string): boolean {
  const [year, month, day] = [value.slice(0, 4), value.slice(5, 7), value.slice(8, 10)].map(Number);
  const date = new Date(0);
  date.setUTCFullYear(year ?? 0, (month ?? 1) - 1, day ?? 1);
  return date.getUTCDate() === day;
}
