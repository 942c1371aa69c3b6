import { type LogTime, parseLogTime } from "./log-time.ts";
import { genericError } from "./status.ts";

/** Which lines of a container's log are wanted, and how. */
export interface PodLogOptions {
  readonly follow: boolean;
  /** Of the attempt before the present one. */
  readonly previous: boolean;
  /** Each line begins with its time. */
  readonly timestamps: boolean;
  /** No line of an earlier time. */
  readonly since: LogTime | undefined;
  /** The last so many lines; absent: all. */
  readonly tailLines: number | undefined;
  /** Ends after exactly so many bytes. */
  readonly limitBytes: number | undefined;
  /** Absent: both. */
  readonly stream: "stdout" | "stderr" | undefined;
}

const STREAMS: Readonly<Record<string, PodLogOptions["stream"] | "invalid">> = {
  All: undefined,
  Stdout: "stdout",
  Stderr: "stderr",
};

/** Reads PodLogOptions from a query, by Kubernetes' rules for them. Throws the kubelet's refusals 400 and 422. */
export function parsePodLogOptions(query: URLSearchParams, nowMs: number): PodLogOptions {
  const sinceSeconds = integerOf(query, "sinceSeconds");
  const sinceTime = timeOf(query, "sinceTime");
  // The kubelet's own name of the option, from before there were options.
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
    // Lines of one stream cannot be counted from the end.
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

/** Absent, "0" and "false" are false, everything else is true. */
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
