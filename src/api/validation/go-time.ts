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

const NEITHER_SEXTET_NOR_LINE_END = /[^A-Za-z0-9+/\r\n]/;

const LINE_END = /^[\r\n]$/;

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

/** Go's base64.StdEncoding error for a text; undefined if it is valid. Line ends are skipped. */
export function goBase64Problem(text: string): string | undefined {
  const at = firstBadByte(Buffer.from(text, "utf8").toString("latin1"));
  return at === undefined ? undefined : `illegal base64 data at input byte ${at}`;
}

/**
 * The offset that Go reports: the byte before the expected one, or the end (encoding/base64,
 * decodeQuantum).
 */
function firstBadByte(bytes: string): number | undefined {
  const found = bytes.search(NEITHER_SEXTET_NOR_LINE_END);
  const at = found === -1 ? bytes.length : found;
  const inQuantum = bytes.slice(0, at).replace(/[\r\n]/g, "").length % 4;
  if (found === -1) return inQuantum === 0 ? undefined : bytes.length - inQuantum;
  return bytes.charAt(at) === "=" && inQuantum >= 2 ? badPadding(bytes, at + 1, inQuantum) : at;
}

function badPadding(bytes: string, start: number, inQuantum: number): number | undefined {
  let at = afterLineEnds(bytes, start);
  if (inQuantum === 2) {
    if (at === bytes.length) return at;
    if (bytes.charAt(at) !== "=") return at - 1;
    at = afterLineEnds(bytes, at + 1);
  }
  return at < bytes.length ? at : undefined;
}

function afterLineEnds(bytes: string, start: number): number {
  let at = start;
  while (at < bytes.length && LINE_END.test(bytes.charAt(at))) at += 1;
  return at;
}
