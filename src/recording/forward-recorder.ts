import { TextDecoder } from "node:util";
import type { SessionEnd } from "@sluice/client/internal/sessions/session-end";
import type {
  ObservedPayload,
  ObservedSession,
  SessionObserver,
  SessionStream,
  Side,
} from "../sessions/observers/session-observer.ts";
import type { SessionReport } from "../sessions/session.ts";
import type { SessionRecording } from "./session-recording.ts";

/** Bytes that one connection adds to the recording's size. */
const CONNECTION_BYTES = 256;
/** Characters of a node's error that are recorded; it is usually one line. */
const MAX_ERROR_BYTES = 1024;

/** Open connections of a port-forward. Past it the oldest is recorded before it ends. */
const MAX_CONNECTIONS = 1_000;

interface Connection {
  readonly port: string;
  readonly openedMs: number;
  bytesToNode: number;
  bytesToClient: number;
  error: string;
  /** Decodes the error's parts, which may end within a character. */
  decoder?: TextDecoder;
  readonly ended: Set<Side>;
}

/** Records a port-forward: its connections' ports, times and byte counts, never their payload. */
export class ForwardRecorder implements SessionObserver {
  readonly isRequired: boolean;
  readonly payload: ObservedPayload = { node: true, input: true };
  readonly #recording: SessionRecording;
  readonly #maxOutputBytes: number;
  /** Keyed by `nameOf`. */
  readonly #connections = new Map<string, Connection>();
  #recordedBytes = 0;
  #countedBytes = 0;
  #unrecorded = 0;

  constructor(recording: SessionRecording, maxOutputBytes: number) {
    this.#recording = recording;
    this.#maxOutputBytes = maxOutputBytes;
    this.isRequired = recording.isRequired;
  }

  onBegin(session: ObservedSession): void {
    this.#recording.begin(session);
  }

  onStream(stream: SessionStream): SessionEnd | undefined {
    if (this.#recording.failure !== undefined) return this.#recording.failure;
    if (stream.type === "data") this.#connectionOf(stream);
    return undefined;
  }

  onData(stream: SessionStream, from: Side, part: Uint8Array): SessionEnd | undefined {
    if (this.#recording.failure !== undefined) return this.#recording.failure;
    const connection = this.#connectionOf(stream);
    if (stream.type === "error") {
      connection.decoder ??= new TextDecoder("utf-8", { ignoreBOM: true });
      if (connection.error.length < MAX_ERROR_BYTES)
        connection.error += connection.decoder.decode(part, { stream: true });
    } else if (from === "node") connection.bytesToClient += part.byteLength;
    else connection.bytesToNode += part.byteLength;
    this.#countedBytes += part.byteLength;
    return undefined;
  }

  onStreamEnd(stream: SessionStream, from: Side): void {
    const name = nameOf(stream);
    const connection = this.#connections.get(name);
    if (connection === undefined || stream.type !== "data") return;
    connection.ended.add(from);
    if (connection.ended.size === 2) this.#record(name, connection);
  }

  onUndecodable(side: Side, message: string): SessionEnd | undefined {
    return this.#recording.undecodable(side, message);
  }

  onNotStarted(): void {
    this.#recording.queue.discard();
  }

  onEnd({ cause }: SessionReport): Promise<void> {
    for (const [name, connection] of this.#connections) this.#record(name, connection);
    const { queue, nowMs } = this.#recording;
    if (this.#unrecorded > 0)
      queue.event(nowMs, "m", `connections that are not recorded: ${this.#unrecorded}`);
    const end = { cause, exitCode: undefined, countedBytes: this.#countedBytes };
    return this.#recording.end(end, 0);
  }

  #connectionOf(stream: SessionStream): Connection {
    const name = nameOf(stream);
    const there = this.#connections.get(name);
    if (there !== undefined) return there;
    const [oldest] = this.#connections;
    if (oldest !== undefined && this.#connections.size >= MAX_CONNECTIONS) this.#record(...oldest);
    const opened: Connection = {
      port: stream.port ?? "",
      openedMs: this.#recording.nowMs,
      bytesToNode: 0,
      bytesToClient: 0,
      error: "",
      ended: new Set(),
    };
    this.#connections.set(name, opened);
    return opened;
  }

  #record(name: string, { port, openedMs, error, bytesToNode, bytesToClient }: Connection): void {
    this.#connections.delete(name);
    const { queue, nowMs } = this.#recording;
    const seconds = Number(((nowMs - openedMs) / 1_000).toFixed(3));
    const text = error === "" ? {} : { error: error.slice(0, MAX_ERROR_BYTES) };
    const data = JSON.stringify({ port, seconds, bytesToNode, bytesToClient, ...text });
    this.#recordedBytes += CONNECTION_BYTES;
    const isWithin = this.#recordedBytes <= this.#maxOutputBytes;
    if (isWithin && queue.event(nowMs, "p", data)) return;
    if (isWithin) this.#recording.fail("the recording has no room for more connections");
    this.#unrecorded += 1;
  }
}

function nameOf({ connection, port }: SessionStream): string {
  return `${connection ?? ""} ${port ?? ""}`;
}
