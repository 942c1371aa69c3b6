import { genericError } from "./status.ts";

/** Selects and formats a container's log lines. */
export interface PodLogOptions {
  readonly follow: boolean;
  /** Reads the previous attempt's log. */
  readonly previous: boolean;
  /** Each line begins with its time. */
  readonly timestamps: boolean;
  /** Omits lines before this time. */
  readonly since: LogTime | undefined;
  /** The number of lines from the end; absent means all. */
  readonly tailLines: number | undefined;
  /** Ends after exactly this many bytes. */
  readonly limitBytes: number | undefined;
  /** Absent means both. */
  readonly stream: "stdout" | "stderr" | undefined;
}

const STREAMS: Readonly<Record<string, PodLogOptions["stream"] | "invalid">> = {
  All: undefined,
  Stdout: "stdout",
  Stderr: "stderr",
};

const RFC3339 = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/;

/** Reads PodLogOptions from a query by Kubernetes' rules. Throws the kubelet's 400 and 422. */
export function parsePodLogOptions(query: URLSearchParams, nowMs: number): PodLogOptions {
  const sinceSeconds = integerOf(query, "sinceSeconds");
  const sinceTime = timeOf(query, "sinceTime");
  // The kubelet's older name for the option.
  const tail = query.get("tail");
  const tailLines =
    tail === null ? integerOf(query, "tailLines") : tail === "all" ? undefined : integerOf(query, "tail");
  const limitBytes = integerOf(query, "limitBytes");
  const stream = STREAMS[query.get("stream") || "All"];
  const isStreamKnown = Object.hasOwn(STREAMS, query.get("stream") || "All");
  const isValid =
    isStreamKnown &&
    (tailLines ?? 0) >= 0 &&
    (limitBytes ?? 1) >= 1 &&
    (sinceSeconds ?? 1) >= 1 &&
    (sinceSeconds === undefined || sinceTime === undefined) &&
    // The lines of one stream cannot be counted from the end.
    (tailLines === undefined || stream === undefined);
  if (!isValid) throw genericError(422, '{"message": "Invalid request."}');
  const since = sinceSeconds === undefined ? sinceTime : timeBefore(nowMs, sinceSeconds);
  return {
    follow: booleanOf(query, "follow"),
    previous: booleanOf(query, "previous"),
    timestamps: booleanOf(query, "timestamps"),
    since,
    tailLines,
    limitBytes,
    stream: stream as PodLogOptions["stream"],
  };
}

function timeBefore(nowMs: number, seconds: number): LogTime {
  const ms = nowMs - seconds * 1_000;
  return { seconds: Math.floor(ms / 1_000), nanoseconds: Math.round(ms % 1_000) * 1_000_000 };
}

/** Absent, "0" and "false" are false, all else is true. */
function booleanOf(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}

function integerOf(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name);
  if (value === null || value === "") return undefined;
  const number = Number(value);
  if (!/^[+-]?\d+$/.test(value) || !Number.isSafeInteger(number)) throw undecodable();
  return number;
}

function timeOf(query: URLSearchParams, name: string): LogTime | undefined {
  const value = query.get(name);
  if (value === null || value === "") return undefined;
  const time = parseLogTime(value);
  if (time === undefined) throw undecodable();
  return time;
}

function undecodable(): Error {
  return genericError(400, '{"message": "Unable to decode query."}');
}

/** A time with nanoseconds, as in log lines. */
export interface LogTime {
  readonly seconds: number;
  readonly nanoseconds: number;
}

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
