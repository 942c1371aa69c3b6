// asciicast v3: one header object, then one array for each event. Pure.
import { OutputLine } from "./output-line.ts";

/**
 * Event codes. `o`, `i`, `r`, `m` and `x` are asciicast's; players skip the others
 * (docs/session-recording.md).
 */
export type EventCode = "o" | "i" | "r" | "m" | "x" | "s" | "b" | "d" | "f" | "p" | "g";

/** The format version that this program writes, and the newest that it reads. */
export const FORMAT = 1;

/** The session's facts, in the header's `sluice` field. */
export interface RecordedFacts {
  /** Absent means 1. */
  readonly format?: number | undefined;
  readonly session: string;
  /** RFC 3339 with milliseconds. */
  readonly startedAt: string;
  readonly rule: string;
  readonly record: "output" | "all";
  readonly subresource: string;
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly container?: string | undefined;
  readonly user: string;
  readonly requestedBy?: string | undefined;
  readonly groups: readonly string[];
  readonly command: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly client: { readonly address: string; readonly agent: string };
  readonly plan: string;
  readonly planReason: string;
  readonly protocol: string;
  /** Set if the command reads or writes a tar archive, whose files are recorded as digests. */
  readonly archive?: "pack" | "unpack" | undefined;
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** Pads the header's numbers, so that the terminal's first size can overwrite the default. */
const SIZE_WIDTH = 5;
export const DEFAULT_SIZE: TerminalSize = { columns: 80, rows: 24 };

/** The header line. Its length does not depend on the size. */
export function headerLine(facts: RecordedFacts, { columns, rows }: TerminalSize): string {
  const { namespace, pod, container, user, command } = facts;
  const term = `{"cols":${padded(columns)},"rows":${padded(rows)}}`;
  const rest = {
    timestamp: Math.floor(Date.parse(facts.startedAt) / 1_000),
    ...(command.length > 0 && { command: command.join(" ") }),
    title: `${namespace}/${pod}${container === undefined ? "" : `/${container}`} by ${user}`,
    sluice: facts,
  };
  return `{"version":3,"term":${term},${JSON.stringify(rest).slice(1)}`;
}

function padded(size: number): string {
  return String(Math.min(Math.max(0, size), 99_999)).padEnd(SIZE_WIDTH);
}

/**
 * Encodes events. Intervals are differences of rounded times, so that rounding errors do not add up,
 * and are never negative.
 */
export class EventLines {
  #lastMs = 0;

  /** `timeMs` counts from the session's start. */
  line(timeMs: number, code: EventCode, data: string): string {
    return `${this.#start(timeMs, code)}${JSON.stringify(data)}]`;
  }

  /** Begins a line of output, of about this many bytes. */
  output(timeMs: number, bytes: number): OutputLine {
    return new OutputLine(`${this.#start(timeMs, "o")}"`, bytes);
  }

  #start(timeMs: number, code: EventCode): string {
    const nowMs = Math.max(this.#lastMs, Math.round(timeMs));
    const interval = ((nowMs - this.#lastMs) / 1_000).toFixed(3);
    this.#lastMs = nowMs;
    return `[${interval}, "${code}", `;
  }

  /** The last event's rounded time. */
  get lastMs(): number {
    return this.#lastMs;
  }

  /** Continues a recording whose events so far took this long. */
  skipTo(timeMs: number): void {
    this.#lastMs = timeMs;
  }
}

export interface RecordedEvent {
  /** Seconds since the previous event. */
  readonly interval: number;
  readonly code: string;
  readonly data: string;
}

/** Undefined if the line is not an event. */
export function parseEvent(line: string): RecordedEvent | undefined {
  if (!line.startsWith("[")) return undefined;
  const event = parsed(line);
  if (!Array.isArray(event)) return undefined;
  const [interval, code, data] = event as readonly unknown[];
  return Number.isFinite(interval) && typeof code === "string" && typeof data === "string"
    ? { interval: interval as number, code, data }
    : undefined;
}

export interface RecordedHeader {
  readonly term: { readonly cols: number; readonly rows: number };
  readonly timestamp?: number;
  readonly command?: string;
  readonly title?: string;
  /** Absent in recordings by other programs. */
  readonly sluice?: RecordedFacts;
}

/** Undefined if the line is not an asciicast v3 header. Drops fields of a wrong type and malformed facts. */
export function parseHeader(line: string): RecordedHeader | undefined {
  const header: unknown = parsed(line);
  if (!isObject(header) || header.version !== 3 || !isObject(header.term)) return undefined;
  if (!hasTypes(header.term, { cols: "number", rows: "number" })) return undefined;
  const own = { ...header };
  for (const [name, type] of Object.entries(TYPES))
    if (name in own && !hasTypes(own, { [name]: type })) delete own[name];
  if (!areFacts(own.sluice)) delete own.sluice;
  return own as unknown as RecordedHeader;
}

/** The format version in a recording's first line; 1 if the line names none. */
export function formatOf(header: string): number {
  const value: unknown = parsed(header);
  const facts = isObject(value) ? value.sluice : undefined;
  return isObject(facts) && typeof facts.format === "number" ? facts.format : 1;
}

type JsonType = "string" | "number" | "boolean" | "strings";
const TYPES = { timestamp: "number", command: "string", title: "string" } as const;
const CLIENT = { address: "string", agent: "string" } as const;
const FACTS: Readonly<
  Record<
    Exclude<keyof RecordedFacts, "format" | "container" | "requestedBy" | "archive" | "client">,
    JsonType
  >
> = {
  session: "string",
  startedAt: "string",
  rule: "string",
  record: "string",
  subresource: "string",
  namespace: "string",
  pod: "string",
  node: "string",
  user: "string",
  groups: "strings",
  command: "strings",
  tty: "boolean",
  stdin: "boolean",
  plan: "string",
  planReason: "string",
  protocol: "string",
};

function areFacts(value: unknown): boolean {
  if (!isObject(value) || !hasTypes(value, FACTS)) return false;
  const { container = "", requestedBy = "", archive = "pack", client } = value;
  return (
    hasTypes({ container, requestedBy }, { container: "string", requestedBy: "string" }) &&
    (archive === "pack" || archive === "unpack") &&
    isObject(client) &&
    hasTypes(client, CLIENT)
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function hasTypes(
  object: Readonly<Record<string, unknown>>,
  types: Readonly<Record<string, JsonType>>,
): boolean {
  return Object.entries(types).every(([name, type]) => {
    const value = object[name];
    // JSON's 1e999 is infinite, and would be written as null.
    if (type === "number") return Number.isFinite(value);
    if (type !== "strings") return typeof value === type;
    return Array.isArray(value) && value.every((each) => typeof each === "string");
  });
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
