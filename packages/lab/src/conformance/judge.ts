import type { SessionError, SessionTimes, UpgradedConnection } from "@sluice/client";
import { type CommandLink, type LinkEnd, MAX_PART_BYTES } from "@sluice/client/internal/command-link";
import { SpdyCommandLink } from "@sluice/client/internal/spdy-command-link";
import { WebSocketCommandLink } from "@sluice/client/internal/websocket-command-link";
import {
  type Outcome,
  outcomeOf,
  type RemoteCommandVersion,
  type RequestedStreams,
  type TerminalSize,
} from "@sluice/protocols/remotecommand";
import { RecordedOutput } from "./recorded-output.ts";

const QUOTED_CHARACTERS = 120;

/** Expects that the command ended with this code, the server reported it, and the session ended properly. */
export function expectExit(result: CommandResult, code: number): void {
  expectStatus(result, code);
  if (!result.isOrderly)
    throw new Violation(`the status arrived, but the session ended with: ${result.error.message}`);
}

/** Expects the same status, regardless of how the session ended afterwards. */
export function expectStatus({ outcome, error }: CommandResult, code: number): void {
  const expected = code === 0 ? "success" : `exit code ${code}`;
  switch (outcome.type) {
    case "missing":
      throw new Violation(`no status arrived, ${expected} was expected: ${error.message}`);
    case "success":
      if (code !== 0) throw new Violation(`success was reported, ${expected} was expected`);
      return;
    case "exit":
      if (outcome.code !== code)
        throw new Violation(`exit code ${outcome.code} was reported, ${expected} was expected`);
      return;
    case "failure":
      throw new Violation(`a failure was reported, ${expected} was expected: ${outcome.message}`);
  }
}

export function expectText(what: string, actual: string, expected: string): void {
  if (actual !== expected) throw new Violation(`${what} is ${quoted(actual)}, not ${quoted(expected)}`);
}

/**
 * Expects exactly these bytes, and no more. With `result`, the message also says how the session
 * ended.
 */
export function expectBytes(
  what: string,
  output: RecordedOutput,
  byteLength: number,
  result?: CommandResult,
): void {
  if (output.firstWrong !== -1)
    throw new Violation(`${what}: the byte at offset ${output.firstWrong} is wrong`);
  if (output.byteLength !== byteLength) {
    const lost = byteLength - output.byteLength;
    const difference = lost > 0 ? `the last ${lost} are missing` : `${-lost} too many`;
    const end = result === undefined ? "" : `; ${endOf(result)}`;
    throw new Violation(`${what}: ${output.byteLength} of ${byteLength} bytes arrived, ${difference}${end}`);
  }
}

function endOf({ outcome, isOrderly, error }: CommandResult): string {
  if (outcome.type === "missing") return `no status arrived: ${error.message}`;
  const status = outcome.type === "exit" ? `exit code ${outcome.code}` : outcome.type;
  return isOrderly ? `the status is ${status}` : `the status is ${status}, then: ${error.message}`;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > QUOTED_CHARACTERS ? `${text.slice(0, QUOTED_CHARACTERS)}…` : text);
}

/** The endpoint does not meet the requirement. The message names the observation and the expectation. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** The case cannot judge this endpoint. The message says why. */
export class SkippedCase extends Error {
  override readonly name = "SkippedCase";
}

const PACE_MS = 50;

/** How a session ended, before any judgement. */
interface CommandResult {
  readonly outcome: Outcome;
  /** True if the server itself ended the session properly: for a WebSocket, with Close 1000. */
  readonly isOrderly: boolean;
  /** The error for this end if there was no status. */
  readonly error: SessionError;
  /** The time from the status to the end; undefined without a status. */
  readonly closeDelayMs: number | undefined;
}

export interface CommandSessionOptions {
  readonly check?: ConstructorParameters<typeof RecordedOutput>[0];
  /** Bytes to read per second; by default as fast as they arrive. */
  readonly readRate?: number | undefined;
}

/**
 * One exec or attach session that observes every step. Unlike an executor it is strict: a status
 * does not hide how the session ended.
 */
export class CommandSession {
  readonly stdout: RecordedOutput;
  readonly stderr: RecordedOutput = new RecordedOutput();
  readonly ended: Promise<CommandResult>;
  readonly protocol: RemoteCommandVersion;
  /** The connection's socket, to send frames that links never send. */
  readonly socket: UpgradedConnection["socket"];
  readonly #link: CommandLink;
  readonly #status: Uint8Array[] = [];
  readonly #pace: ReadPace | undefined;
  #statusAtMs: number | undefined;
  #resolveEnded: (result: CommandResult) => void = () => {};
  #drained: (() => void)[] = [];
  #isOver = false;

  constructor(
    connection: UpgradedConnection,
    protocol: RemoteCommandVersion,
    requested: RequestedStreams,
    times: SessionTimes,
    { check, readRate }: CommandSessionOptions = {},
  ) {
    this.protocol = protocol;
    this.socket = connection.socket;
    this.stdout = new RecordedOutput(check);
    if (readRate !== undefined) this.#pace = new ReadPace(readRate, this);
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    const handler = {
      onOutput: (stream: "stdout" | "stderr", part: Uint8Array) => this.#output(stream, part),
      onStatus: (part: Uint8Array) => {
        this.#statusAtMs ??= performance.now();
        this.#status.push(new Uint8Array(part));
      },
      onDrain: () => this.#drain(),
      onEnd: (end: LinkEnd) => this.#end(end),
    };
    this.#link =
      connection.transport === "spdy"
        ? new SpdyCommandLink(connection, protocol, requested, handler, times)
        : new WebSocketCommandLink(connection, protocol, handler, times);
    this.#link.start(true);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get statusText(): string {
    return Buffer.concat(this.#status).toString();
  }

  /** Resolves when all bytes are accepted, or the session is over. */
  async write(bytes: Uint8Array | string): Promise<void> {
    const all = typeof bytes === "string" ? Buffer.from(bytes) : bytes;
    for (let at = 0; at < all.byteLength && !this.#isOver; at += MAX_PART_BYTES) {
      if (this.#link.sendInput(all.subarray(at, at + MAX_PART_BYTES)) || this.#isOver) continue;
      await new Promise<void>((resolve) => this.#drained.push(resolve));
    }
  }

  endInput(): void {
    this.#link.endInput();
  }

  resize(size: TerminalSize): void {
    this.#link.resize(size);
  }

  /** Stops reading until `resume`. */
  pause(): void {
    this.#link.pause();
  }

  resume(): void {
    if (!this.#isOver) this.#link.resume();
  }

  /** Ends the session properly, from the client's side. */
  close(): void {
    this.#leave();
    this.#link.close();
  }

  /** Breaks the connection. */
  abort(): void {
    this.#leave();
    this.#link.abort();
  }

  #output(stream: "stdout" | "stderr", part: Uint8Array): void {
    this[stream].add(part);
    if (!this.#isOver) this.#pace?.read(part.byteLength);
  }

  #end({ isOrderly, error }: LinkEnd): void {
    if (this.#isOver) return;
    this.#leave();
    const outcome = outcomeOf(this.protocol, Buffer.concat(this.#status));
    const closeDelayMs = this.#statusAtMs === undefined ? undefined : performance.now() - this.#statusAtMs;
    this.#resolveEnded({ outcome, isOrderly, error, closeDelayMs });
  }

  #leave(): void {
    this.#isOver = true;
    this.#drain();
  }

  #drain(): void {
    for (const resolve of this.#drained.splice(0)) resolve();
  }
}

/** Pauses a source so that at most this many bytes a second are read from it. */
export class ReadPace {
  readonly #bytesPerSecond: number;
  readonly #source: { pause(): void; resume(): void };
  #unpacedBytes = 0;

  constructor(bytesPerSecond: number, source: { pause(): void; resume(): void }) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#source = source;
  }

  /** Call this after each part that was read. */
  read(byteLength: number): void {
    this.#unpacedBytes += byteLength;
    if (this.#unpacedBytes < (this.#bytesPerSecond * PACE_MS) / 1_000) return;
    const pauseMs = (this.#unpacedBytes / this.#bytesPerSecond) * 1_000;
    this.#unpacedBytes = 0;
    this.#source.pause();
    setTimeout(() => this.#source.resume(), pauseMs).unref();
  }
}
