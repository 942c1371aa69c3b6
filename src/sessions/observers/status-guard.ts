import { ProtocolError } from "../../../protocols/protocol-error.ts";
import {
  encodeStatus,
  internalErrorStatus,
  isRemoteCommandVersion,
  type RemoteCommandVersion,
  specOf,
} from "../../../protocols/remotecommand/index.ts";
import {
  DATA_HEADER_BYTES,
  FrameDecoder,
  FrameSplitter,
  FrameWalker,
  type SpdyLimits,
  writeDataHeader,
} from "../../../protocols/spdy/index.ts";
import { CommandResult } from "../carriers/command-result.ts";
import type { SessionEnd } from "../carriers/session-end.ts";
import { EndObserver } from "./end-observer.ts";

/** Has the last word towards a client whose upstream said none. */
export interface RelayGuard {
  /** Passes on what the upstream sends, through `pass`, in pieces that end where a last word can be put. */
  passOn(chunk: Uint8Array, pass: (bytes: Uint8Array) => void): void;
  /** The bytes with which to tell the client of a failure, or undefined when it cannot be told. */
  failureFrame(message: string): Uint8Array | undefined;
  /** True when the upstream has begun to say how the session ended: nothing may be said in its place. */
  readonly hasStatus: boolean;
}

/**
 * Keeps a SPDY exec or attach that passes through honest: if the upstream ends without a status, the client is told so
 * on its error stream.
 *
 * Every client-go takes an error stream that ends empty for exit code 0, so a node that dies in mid-command would look
 * like a command that succeeded. The guard learns the error stream's id from the client's first frames, and then only
 * counts frames (FrameSplitter). Bytes that it does not understand are passed on untouched, for the peers to judge.
 */
export class StatusGuard extends EndObserver implements RelayGuard {
  readonly #version: RemoteCommandVersion;
  readonly #result: CommandResult;
  readonly #splitter: FrameSplitter;
  #clientFrames: FrameDecoder | undefined;
  #pass: (bytes: Uint8Array) => void = () => {};
  #errorStreamId: number | undefined;
  #isReplied = false;
  #isOpaque = false;
  #hasStatus = false;
  #hasResult = false;
  #isErrorStreamEnded = false;
  readonly #clientWalker = new FrameWalker(() => this.clientLeft("the client ended the session"));

  /** `version`: the X-Stream-Protocol-Version that the upstream chose. */
  constructor(version: string, limits: SpdyLimits) {
    super();
    // Without a header the version is v1's.
    this.#version = isRemoteCommandVersion(version) ? version : "channel.k8s.io";
    this.#result = new CommandResult(this.#version);
    this.#clientFrames = new FrameDecoder(
      {
        onData: () => {},
        onControl: (frame) => {
          if (frame.type !== "SYN_STREAM" || frame.headers.get("streamtype") !== "error") return;
          this.#errorStreamId = frame.streamId;
          this.#clientFrames?.stop();
          this.#clientFrames = undefined;
        },
      },
      limits,
    );
    this.#splitter = new FrameSplitter(
      {
        onBytes: (bytes) => this.#pass(bytes),
        onPayload: (streamId, bytes, start, end) => {
          if (streamId === this.#errorStreamId) this.#readStatus(bytes.subarray(start, end));
        },
        onReply: (streamId) => {
          if (streamId === this.#errorStreamId) this.#isReplied = true;
        },
        // Up to v3 success is an error stream that ends empty.
        onFinish: (streamId) => {
          if (streamId !== this.#errorStreamId) return;
          this.#isErrorStreamEnded = true;
          if (this.#speaksJson) return;
          this.#hasStatus = true;
          // v1 servers reset the error stream before the command begins.
          if (this.#version !== "channel.k8s.io") this.#hasResult = true;
        },
        onGoAway: () => {
          if (this.#hasStatus) this.#hasResult = true;
        },
      },
      limits.maxControlFrameBytes,
    );
  }

  get hasStatus(): boolean {
    return this.#hasStatus;
  }

  /** The node has said all of how the session ended. */
  get hasResult(): boolean {
    return this.#hasResult;
  }

  fromDownstream(chunk: Uint8Array): void {
    this.#clientWalker.push(chunk);
    try {
      this.#clientFrames?.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#clientFrames = undefined;
    }
  }

  /** It is read as it is passed on. */
  fromUpstream(): void {}

  passOn(chunk: Uint8Array, pass: (bytes: Uint8Array) => void): void {
    if (this.#isOpaque) {
      pass(chunk);
      return;
    }
    this.#pass = pass;
    try {
      this.#splitter.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      // What the splitter holds is lost with it, so nothing that follows could be understood by anybody.
      this.#isOpaque = true;
      throw error;
    }
  }

  failureFrame(message: string): Uint8Array | undefined {
    const streamId = this.#errorStreamId;
    // Clients drop DATA on a stream that was not replied to; their own time-out tells them of a failure then.
    if (streamId === undefined || !this.#isReplied || this.#isOpaque || this.#hasStatus) return undefined;
    const status = this.#statusBytes(message);
    const frame = new Uint8Array(DATA_HEADER_BYTES + status.byteLength);
    writeDataHeader(frame, 0, streamId, status.byteLength, true);
    frame.set(status, DATA_HEADER_BYTES);
    return frame;
  }

  protected judge(how: string): SessionEnd {
    this.#result.end(this.#isErrorStreamEnded);
    return this.#result.conclude(`${how} without a status`).end;
  }

  get #speaksJson(): boolean {
    return specOf(this.#version).hasStatusJson;
  }

  #readStatus(part: Uint8Array): void {
    this.#hasStatus = true;
    this.#result.receive(part);
    if (this.#result.isComplete) this.#hasResult = true;
  }

  #statusBytes(message: string): Uint8Array {
    return this.#speaksJson ? encodeStatus(internalErrorStatus(message)) : new TextEncoder().encode(message);
  }
}
