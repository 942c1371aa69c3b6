import { createHash, type Hash } from "node:crypto";
import type { SessionEnd } from "@sluice/client/internal/sessions/session-end";
import { isRemoteCommandVersion, outcomeOf, ResizeDecoder } from "@sluice/protocols/remotecommand";
import {
  type ObservedPayload,
  type ObservedSession,
  RESIZE,
  type SessionObserver,
  type SessionStream,
  type Side,
  STDERR,
} from "../sessions/observers/session-observer.ts";
import type { SessionReport } from "../sessions/session.ts";
import type { SessionRecording } from "./session-recording.ts";

/** A node's Status is a few hundred bytes. The exit code in a longer one is not recorded. */
const MAX_STATUS_BYTES = 64 * 1024;
/** Bytes that one resize adds to the recording's size. */
const RESIZE_BYTES = 32;

/** Output for which the queue had no room. */
interface Loss {
  readonly fromMs: number;
  readonly hash: Hash;
  bytes: number;
}

/** Records an exec or attach by copying its data into the queue. */
export class CommandRecorder implements SessionObserver {
  readonly isRequired: boolean;
  readonly payload: ObservedPayload;
  readonly #recording: SessionRecording;
  readonly #maxOutputBytes: number;
  readonly #sizes = new ResizeDecoder();
  #recordedBytes = 0;
  #countedBytes = 0;
  #loss: Loss | undefined;
  #status: Buffer[] = [];
  #statusBytes = 0;

  /** The joiner that typed last; undefined if it was the session's own user. */
  #typist: string | undefined;
  #isInputLost = false;

  /** `takes`: `input` sends input to the thread; `archive` leaves the limit on stdout to the thread. */
  constructor(
    recording: SessionRecording,
    maxOutputBytes: number,
    takes: { readonly input: boolean; readonly archive: boolean } = { input: false, archive: false },
  ) {
    this.#recording = recording;
    this.#maxOutputBytes = takes.archive ? Number.POSITIVE_INFINITY : maxOutputBytes;
    this.payload = { node: true, sizes: true, input: takes.input };
    this.isRequired = recording.isRequired;
  }

  onBegin(session: ObservedSession): void {
    this.#recording.begin(session, () => this.#endLoss());
  }

  onData(stream: SessionStream, from: Side, part: Uint8Array): SessionEnd | undefined {
    if (from === "node") return this.#output(stream === STDERR ? "stderr" : "stdout", part);
    if (stream.type === "stdin") {
      this.#typedBy(stream.by);
      return this.#input(part);
    }
    if (stream === RESIZE) this.#resize(part);
    return undefined;
  }

  onJoin(user: string, hasJoined: boolean): void {
    this.#recording.queue.event(this.#recording.nowMs, "m", `${user} ${hasJoined ? "joined" : "left"}`);
  }

  onStatus(part: Uint8Array): void {
    this.#statusBytes += part.byteLength;
    if (this.#statusBytes <= MAX_STATUS_BYTES) this.#status.push(Buffer.from(part));
  }

  onReport(): Promise<void> | undefined {
    return this.#recording.written();
  }

  onUndecodable(side: Side, message: string): SessionEnd | undefined {
    return this.#recording.undecodable(side, message);
  }

  onNotStarted(): void {
    this.#recording.queue.discard();
  }

  onEnd({ cause }: SessionReport): Promise<void> {
    this.#endLoss();
    const { queue, nowMs } = this.#recording;
    if (this.#isInputLost) queue.event(nowMs, "m", "input that is not recorded: the queue was full");
    const exitCode = cause === "completed" ? this.#exitCode() : undefined;
    return this.#recording.end({ cause, exitCode, countedBytes: this.#countedBytes }, this.#recordedBytes);
  }

  #output(kind: "stdout" | "stderr", part: Uint8Array): SessionEnd | undefined {
    const recording = this.#recording;
    if (recording.failure !== undefined) return recording.failure;
    const left = this.#maxOutputBytes - this.#recordedBytes;
    if (left <= 0) {
      this.#countedBytes += part.byteLength;
      return undefined;
    }
    const own = part.byteLength > left ? part.subarray(0, left) : part;
    this.#countedBytes += part.byteLength - own.byteLength;
    this.#recordedBytes += own.byteLength;
    if (this.#loss === undefined && recording.queue.add(kind, recording.nowMs, own)) {
      if (recording.queue.isFilling) recording.hold();
      return undefined;
    }
    if (this.isRequired) return recording.fail("the recording has no room for more output");
    this.#loss ??= { fromMs: recording.nowMs, hash: createHash("sha256"), bytes: 0 };
    this.#loss.bytes += own.byteLength;
    this.#loss.hash.update(own);
    return undefined;
  }

  /** Writes a marker when another person begins to type. */
  #typedBy(by: string | undefined): void {
    if (by === this.#typist) return;
    this.#typist = by;
    const { queue, nowMs, info } = this.#recording;
    queue.event(nowMs, "m", `input of ${by ?? info?.user ?? "the session's user"}`);
  }

  #input(part: Uint8Array): SessionEnd | undefined {
    const recording = this.#recording;
    if (recording.failure !== undefined) return recording.failure;
    if (!this.#isInputLost && recording.queue.add("input", recording.nowMs, part)) {
      if (recording.queue.isFilling) recording.hold();
      return undefined;
    }
    this.#isInputLost = true;
    return recording.fail("the recording has no room for more input");
  }

  #resize(part: Uint8Array): void {
    for (const { width, height } of this.#sizes.push(part)) {
      if (this.#recordedBytes >= this.#maxOutputBytes) return;
      this.#recordedBytes += RESIZE_BYTES;
      this.#recording.queue.resize(this.#recording.nowMs, { columns: width, rows: height });
    }
  }

  #endLoss(): void {
    const loss = this.#loss;
    if (loss === undefined) return;
    this.#loss = undefined;
    const { queue, nowMs } = this.#recording;
    const sha256 = loss.hash.digest("base64");
    queue.lost(nowMs, { bytes: loss.bytes, seconds: (nowMs - loss.fromMs) / 1_000, sha256 });
    this.#recording.noteGap(loss.bytes);
  }

  #exitCode(): number | undefined {
    const protocol = this.#recording.info?.details?.protocol ?? "";
    if (this.#statusBytes > MAX_STATUS_BYTES) return undefined;
    const version = isRemoteCommandVersion(protocol) ? protocol : "channel.k8s.io";
    const outcome = outcomeOf(version, Buffer.concat(this.#status));
    return outcome.type === "success" ? 0 : outcome.type === "exit" ? outcome.code : undefined;
  }
}
