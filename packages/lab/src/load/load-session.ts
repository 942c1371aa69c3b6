import { createHash, type Hash } from "node:crypto";
import { type Readable, Writable } from "node:stream";
import { canEndInput, type LoadPlan } from "./load-plan.ts";
import { LoadError, type Recorder } from "./recorder.ts";
import { LineSequence, MessageSource, SeededStream } from "./seeded-stream.ts";

/**
 * Runs one session to its end: sends `input` (if any) and writes the received bytes to `output`.
 * Throws ConnectError, SessionError or LoadError.
 */
export type Carrier = (input: Readable | undefined, output: Writable, signal: AbortSignal) => Promise<void>;

/** The longest output of a command that prints a digest or a count. */
const MAX_SAID_BYTES = 4 * 1024;
const DIAL_MARGIN_MS = 1_000;

/** One session from the time when it is due: sends, checks the returned bytes, records. */
export class LoadSession {
  readonly #plan: LoadPlan;
  readonly #recorder: Recorder;
  readonly #stream: SeededStream;
  readonly #dueMs: number;
  readonly #abort = new AbortController();
  readonly #source: MessageSource | undefined;
  readonly #hash: Hash | undefined;
  readonly #lines: LineSequence | undefined;
  /** Due times of the messages in flight; the oldest is at `#oldest`. */
  #dueTimes: number[] = [];
  #oldest = 0;
  #sentMessages = 0;
  #sentBytes = 0;
  #receivedBytes = 0;
  #isInputOver = false;
  #lastProgressMs: number;
  #said = Buffer.alloc(0);
  #failure: LoadError | undefined;
  /** True if we ended the session and nothing is missing. */
  #isCut = false;
  #hasFailed = false;

  /** `number` is unique among the run's sessions; `dueMs` (performance.now) is its planned start. */
  constructor(plan: LoadPlan, recorder: Recorder, number: number, dueMs: number) {
    this.#plan = plan;
    this.#recorder = recorder;
    this.#dueMs = dueMs;
    this.#lastProgressMs = performance.now();
    this.#stream = new SeededStream(plan.seed, number);
    this.#hash = plan.verification === "digest" ? createHash("sha256") : undefined;
    this.#lines = plan.verification === "sequence" ? new LineSequence() : undefined;
    this.#source = plan.direction === "download" ? undefined : this.#openSource();
  }

  /** Valid after `run` has resolved. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Resolves when the session is over, successful or not; never rejects. */
  async run(carry: Carrier): Promise<void> {
    const { counts } = this.#recorder;
    counts.started += 1;
    this.#recorder.active += 1;
    try {
      await carry(this.#source, this.#openOutput(), this.#abort.signal);
      this.#judgeEnd();
      this.#succeeded();
    } catch (error) {
      if (this.#isCut && this.#failure === undefined) this.#succeeded();
      else this.#failed(this.#failure ?? error);
    } finally {
      this.#recorder.active -= 1;
      this.#source?.destroy();
    }
  }

  /** Sends no more messages; waits for those in flight. */
  finish(): void {
    if (this.#plan.direction === "download") this.#cut();
    else this.#source?.finish();
  }

  /** Ends the session now. Messages in flight count neither as right nor as wrong. */
  interrupt(): void {
    this.#cut();
  }

  /** Call this a few times a second. */
  tick(nowMs: number): void {
    const isWaiting =
      this.#receivedBytes < this.#sentBytes || this.#isInputOver || this.#source === undefined;
    if (this.#receivedBytes > 0 && !isWaiting) this.#lastProgressMs = nowMs;
    // Until the session is open, the dial's own timeouts apply, because their errors are more
    // precise.
    const isOpen = this.#sentMessages > 0 || this.#receivedBytes > 0;
    const { timeoutMs } = this.#plan;
    if (nowMs - this.#lastProgressMs < (isOpen ? timeoutMs : 2 * timeoutMs + DIAL_MARGIN_MS)) return;
    this.#fail(new LoadError("session", "timeout", `no progress for ${this.#plan.timeoutMs} ms`));
  }

  #openSource(): MessageSource {
    const { messageBytes, messages, messagesPerSecond, messagesInFlight, direction } = this.#plan;
    const source = new MessageSource({
      messageBytes,
      messages: messages === 0 ? Number.POSITIVE_INFINITY : messages,
      perSecond: messagesPerSecond,
      ...(messagesInFlight > 0 && {
        isFull: () => this.#sentBytes - this.#receivedBytes > (messagesInFlight - 1) * messageBytes,
      }),
      bytes: (offset, byteLength) => this.#stream.bytes(offset, byteLength),
      onSent: (dueMs) => {
        if (direction === "echo") this.#dueTimes.push(dueMs);
        this.#hash?.update(this.#stream.bytes(this.#sentBytes, messageBytes));
        this.#sentMessages += 1;
        this.#sentBytes += messageBytes;
        this.#lastProgressMs = performance.now();
        this.#recorder.counts.sentMessages += 1;
        this.#recorder.counts.sentBytes += messageBytes;
      },
    });
    source.once("end", () => {
      this.#isInputOver = true;
      this.#cutWhenAllIsBack();
    });
    return source;
  }

  #openOutput(): Writable {
    return new Writable({
      highWaterMark: 256 * 1024,
      write: (part: Buffer, _encoding, done) => {
        this.#take(part);
        done();
      },
    });
  }

  #take(part: Buffer): void {
    const nowMs = performance.now();
    if (this.#receivedBytes === 0) this.#recorder.latency("firstByte", nowMs - this.#dueMs);
    this.#lastProgressMs = nowMs;
    this.#judge(part);
    this.#receivedBytes += part.byteLength;
    this.#recorder.counts.receivedBytes += part.byteLength;
    if (this.#plan.direction !== "echo") return;
    this.#timeMessages(nowMs);
    this.#source?.roomAgain();
    this.#cutWhenAllIsBack();
  }

  #judge(part: Buffer): void {
    switch (this.#plan.verification) {
      case "echo": {
        if (this.#receivedBytes + part.byteLength > this.#sentBytes) {
          this.#fail(new LoadError("verify", "too-many-bytes", "more came back than was sent"));
        } else this.#judgeAt(this.#stream.firstWrong(this.#receivedBytes, part));
        break;
      }
      case "sequence":
        this.#judgeAt(this.#lines?.firstWrong(this.#receivedBytes, part) ?? -1);
        break;
      case "digest":
        this.#said = Buffer.concat([this.#said, part]).subarray(0, MAX_SAID_BYTES);
        break;
      case "none":
    }
  }

  #judgeAt(wrongAt: number): void {
    if (wrongAt !== -1)
      this.#fail(new LoadError("verify", "wrong-bytes", `byte ${wrongAt} is not what it should be`));
  }

  #timeMessages(nowMs: number): void {
    const { messageBytes } = this.#plan;
    while (this.#oldest < this.#sentMessages && (this.#oldest + 1) * messageBytes <= this.#receivedBytes) {
      // This array stays short: returned messages are dropped from its front from time to time.
      const at = this.#oldest - (this.#sentMessages - this.#dueTimes.length);
      this.#recorder.latency("message", nowMs - (this.#dueTimes[at] ?? nowMs));
      this.#recorder.counts.receivedMessages += 1;
      this.#oldest += 1;
    }
    const back = this.#oldest - (this.#sentMessages - this.#dueTimes.length);
    if (back > 1_024) this.#dueTimes = this.#dueTimes.slice(back);
  }

  /** If the protocol cannot close stdin, the client must end the session. */
  #cutWhenAllIsBack(): void {
    const { direction } = this.#plan;
    if (!this.#isInputOver || canEndInput(this.#plan)) return;
    if (direction === "upload" || this.#receivedBytes >= this.#sentBytes) this.#cut();
  }

  #judgeEnd(): void {
    const { verification, messages, messageBytes } = this.#plan;
    if (this.#failure !== undefined) throw this.#failure;
    if (verification === "echo" && this.#receivedBytes !== this.#sentBytes) {
      throw new LoadError(
        "verify",
        "missing-bytes",
        `${this.#receivedBytes} of ${this.#sentBytes} bytes came back`,
      );
    }
    if (verification === "digest" && !this.#said.toString().startsWith(this.#hash?.digest("hex") ?? "")) {
      throw new LoadError(
        "verify",
        "wrong-digest",
        "the remote command names another SHA-256 than what was sent has",
      );
    }
    if (verification === "sequence" && this.#receivedBytes < messages * messageBytes) {
      const text = `${this.#receivedBytes} of ${messages * messageBytes} bytes arrived`;
      throw new LoadError("verify", "missing-bytes", text);
    }
  }

  #cut(): void {
    this.#isCut = true;
    this.#abort.abort();
  }

  #fail(failure: LoadError): void {
    this.#failure ??= failure;
    this.#abort.abort();
  }

  #succeeded(): void {
    this.#recorder.counts.finished += 1;
    this.#recorder.latency("session", performance.now() - this.#dueMs);
  }

  #failed(error: unknown): void {
    this.#hasFailed = true;
    this.#recorder.counts.failed += 1;
    this.#recorder.error(error);
  }
}
