import { setTimeout as delay } from "node:timers/promises";
import { isBefore, type LogTime, parseLogTime } from "@sluice/client/internal/api/pod-log-options";
import { getBody } from "@sluice/client/internal/get-object";
import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { logPath } from "@sluice/client/internal/pod-paths";
import type { ClientConnection } from "./connection.ts";

/**
 * The place in a log up to which lines were printed. A log is read again from the newest line's
 * second (Kubernetes accepts only whole seconds), and that second's lines are repeated in order.
 */
export class LogPosition {
  #newest: LogTime | undefined;
  #linesOfSecond = 0;
  #toSkip = 0;

  /** Records the next line's time. False if the line was printed before the log was read again. */
  isNew(time: LogTime): boolean {
    const newest = this.#newest;
    if (this.#toSkip > 0 && newest !== undefined && !isBefore(newest, time)) {
      this.#toSkip -= 1;
      return false;
    }
    this.#toSkip = 0;
    if (newest === undefined || time.seconds > newest.seconds) this.#linesOfSecond = 1;
    else if (time.seconds === newest.seconds) this.#linesOfSecond += 1;
    if (newest === undefined || isBefore(newest, time)) this.#newest = time;
    return true;
  }

  /** The time to read again from, as `sinceTime`; undefined: from the original start. */
  readAgain(): string | undefined {
    if (this.#newest === undefined) return undefined;
    this.#toSkip = this.#linesOfSecond;
    return new Date(this.#newest.seconds * 1_000).toISOString().replace(".000Z", "Z");
  }
}

/** How long a log that broke off is requested again. */
const READ_AGAIN_MS = 30_000;
const RETRY_DELAY_MS = 250;

export interface LogSource {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
}

/** The user's request, in the API's words. */
export interface LogRequest {
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly sinceSeconds: number | undefined;
  readonly sinceTime: string | undefined;
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
  readonly insecureSkipTLSVerifyBackend: boolean;
}

interface PrintOptions {
  /** Before each line. */
  readonly prefix: Buffer | undefined;
  readonly signal: AbortSignal;
  /** Resolves when more may be written. */
  write(parts: readonly Buffer[]): Promise<void> | undefined;
}

/**
 * Prints one container's log. If the connection breaks, reads it again from the last line's time,
 * unless there is `limitBytes` or a line has no time. Throws ConnectError.
 */
export async function printContainerLog(
  connection: ClientConnection,
  source: LogSource,
  request: LogRequest,
  options: PrintOptions,
): Promise<void> {
  const log = new ReadLog(connection, source, request, options);
  let brokeOffMs: number | undefined;
  for (let from: string | undefined; ; from = log.readAgain()) {
    try {
      await log.read(from);
      return;
    } catch (error) {
      if (!log.canReadAgain || !mayPass(error) || options.signal.aborted) throw asConnectError(error);
      if (log.hasProgressed) brokeOffMs = undefined;
      brokeOffMs ??= performance.now();
      // If the first request fails, the command fails at once, like any other.
      if (!log.hasBegun || performance.now() - brokeOffMs > READ_AGAIN_MS) throw asConnectError(error);
      connection.verbosity.note(`reading the log again: ${(error as Error).message}`);
      await delay(RETRY_DELAY_MS, undefined, { signal: options.signal }).catch(() => {});
    }
  }
}

class ReadLog {
  readonly #connection: ClientConnection;
  readonly #source: LogSource;
  readonly #request: LogRequest;
  readonly #options: PrintOptions;
  readonly #position = new LogPosition();
  /** Whether the server has answered. */
  hasBegun = false;
  /** Whether the last reading printed a line. */
  hasProgressed = false;
  #hasTimes: boolean;
  #lines = new LogLines();
  /** The current line was printed before the log was read again. */
  #isRepeated = false;

  constructor(connection: ClientConnection, source: LogSource, request: LogRequest, options: PrintOptions) {
    this.#connection = connection;
    this.#source = source;
    this.#request = request;
    this.#options = options;
    this.#hasTimes = request.limitBytes === undefined;
  }

  get canReadAgain(): boolean {
    return this.#hasTimes && !this.#lines.isInside;
  }

  readAgain(): string | undefined {
    return this.#position.readAgain();
  }

  async read(sinceTime: string | undefined): Promise<void> {
    const { target, requestTimeoutMs } = this.#connection;
    const { signal } = this.#options;
    this.hasProgressed = false;
    const path = pathOf(this.#source, this.#request, sinceTime);
    const body = await getBody(target, path, { signal, timeoutMs: requestTimeoutMs });
    this.hasBegun = true;
    if (!this.#hasTimes && this.#options.prefix === undefined) {
      for await (const chunk of body as AsyncIterable<Buffer>) await this.#options.write([chunk]);
      return;
    }
    this.#lines = new LogLines();
    for await (const chunk of body as AsyncIterable<Buffer>) await this.#print(this.#lines.push(chunk));
    await this.#print(this.#lines.end());
  }

  async #print(lines: Iterable<LogLine>): Promise<void> {
    const { prefix, write } = this.#options;
    const parts: Buffer[] = [];
    for (const { time, isContinued, stamped, text } of lines) {
      if (!isContinued) {
        this.#isRepeated = false;
        if (time === undefined) this.#hasTimes = false;
        else if (this.#hasTimes) this.#isRepeated = !this.#position.isNew(time);
      }
      if (this.#isRepeated) continue;
      this.hasProgressed = true;
      if (prefix !== undefined && !isContinued) parts.push(prefix);
      parts.push(this.#request.timestamps ? stamped : text);
    }
    if (parts.length > 0) await write(parts);
  }
}

function pathOf(source: LogSource, request: LogRequest, since: string | undefined): string {
  const { sinceSeconds, sinceTime, tailLines, timestamps, ...rest } = request;
  return logPath(source, {
    ...rest,
    // The original start no longer counts; only the lines after the last printed one are wanted.
    ...(since === undefined && { sinceSeconds, tailLines }),
    sinceTime: since ?? sinceTime,
    timestamps: timestamps || request.limitBytes === undefined,
  });
}

/**
 * True if the connection broke, or the server is briefly away; false if the server refused this
 * user.
 */
function mayPass(error: unknown): boolean {
  if (error instanceof UpstreamError) return true;
  if (!(error instanceof ConnectError)) return false;
  const { httpStatus, leg } = error;
  if (leg === "aborted") return false;
  return httpStatus === undefined || httpStatus === 429 || httpStatus >= 500;
}

function asConnectError(error: unknown): Error {
  return error instanceof UpstreamError
    ? new ConnectError("response", error.message, { cause: error })
    : (error as Error);
}

const LF = 0x0a;
const SPACE = 0x20;
/** RFC 3339 with nine digits and a zone has 35. */
const MAX_TIME_BYTES = 40;
/** Bytes of one line of a log. Past it the line is printed in parts. */
const MAX_LOG_LINE_BYTES = 1024 * 1024;

interface LogLine {
  /** Undefined if the line does not begin with a time, and for the later parts of a long line. */
  readonly time: LogTime | undefined;
  /** True for a later part of the previous line. */
  readonly isContinued: boolean;
  /** The line with its time and its line feed, which the last line may lack. */
  readonly stamped: Buffer;
  /** Without the time. */
  readonly text: Buffer;
}

/** Splits a log that was requested with `timestamps=true` into its lines. */
export class LogLines {
  #parts: Buffer[] = [];
  #bytes = 0;
  #isInside = false;

  /** Whether the last part ended in the middle of its line. */
  get isInside(): boolean {
    return this.#isInside;
  }

  *push(chunk: Buffer): Generator<LogLine, void> {
    let from = 0;
    for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, from)) {
      yield this.#lineWith(chunk.subarray(from, at + 1));
      from = at + 1;
    }
    if (from === chunk.byteLength) return;
    const rest = chunk.subarray(from);
    if (this.#bytes + rest.byteLength > MAX_LOG_LINE_BYTES) yield this.#lineWith(rest);
    else {
      // The chunk's memory belongs to the connection, so it is copied.
      this.#parts.push(Buffer.from(rest));
      this.#bytes += rest.byteLength;
    }
  }

  /**
   * The last line, if it has no line feed. If the log was cut off, the line is incomplete: do not
   * call this.
   */
  *end(): Generator<LogLine, void> {
    if (this.#bytes > 0) yield this.#lineWith(Buffer.alloc(0));
  }

  #lineWith(last: Buffer): LogLine {
    const stamped = this.#parts.length === 0 ? last : Buffer.concat([...this.#parts, last]);
    this.#parts = [];
    this.#bytes = 0;
    const isContinued = this.#isInside;
    this.#isInside = stamped.at(-1) !== LF;
    const space = isContinued ? -1 : stamped.subarray(0, MAX_TIME_BYTES).indexOf(SPACE);
    const time = space === -1 ? undefined : parseLogTime(stamped.toString("latin1", 0, space));
    return { time, isContinued, stamped, text: time === undefined ? stamped : stamped.subarray(space + 1) };
  }
}
