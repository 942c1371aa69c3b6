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
import { type ByteCheck, RecordedOutput } from "./recorded-output.ts";

const PACE_MS = 50;

/** How a session ended, unjudged. */
export interface CommandResult {
  readonly outcome: Outcome;
  /** The server itself ended the session properly: for a WebSocket, with Close 1000. */
  readonly isOrderly: boolean;
  /** The error for this end if there was no status. */
  readonly error: SessionError;
  /** Time from the status to the end; undefined without a status. */
  readonly closeDelayMs: number | undefined;
}

export interface CommandSessionOptions {
  readonly check?: ByteCheck | undefined;
  /** Bytes to read per second; by default as fast as they arrive. */
  readonly readRate?: number | undefined;
}

/**
 * One exec or attach with every step observed. Unlike an executor it is strict: a status does not
 * hide how the session ended.
 */
export class CommandSession {
  readonly stdout: RecordedOutput;
  readonly stderr: RecordedOutput = new RecordedOutput();
  readonly ended: Promise<CommandResult>;
  readonly protocol: RemoteCommandVersion;
  /** For frames that links never send. */
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

/** Pauses a source so that no more bytes a second are read from it. */
export class ReadPace {
  readonly #bytesPerSecond: number;
  readonly #source: { pause(): void; resume(): void };
  #unpacedBytes = 0;

  constructor(bytesPerSecond: number, source: { pause(): void; resume(): void }) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#source = source;
  }

  /** Call after each part that was read. */
  read(byteLength: number): void {
    this.#unpacedBytes += byteLength;
    if (this.#unpacedBytes < (this.#bytesPerSecond * PACE_MS) / 1_000) return;
    const pauseMs = (this.#unpacedBytes / this.#bytesPerSecond) * 1_000;
    this.#unpacedBytes = 0;
    this.#source.pause();
    setTimeout(() => this.#source.resume(), pauseMs).unref();
  }
}
