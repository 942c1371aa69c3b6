import { ProtocolError } from "../../protocols/protocol-error.ts";
import {
  encodeStatus,
  internalErrorStatus,
  isRemoteCommandVersion,
  specOf,
} from "../../protocols/remotecommand/index.ts";
import {
  DATA_HEADER_BYTES,
  FrameDecoder,
  FrameSplitter,
  type SpdyLimits,
  writeDataHeader,
} from "../../protocols/spdy/index.ts";

/** What a relay asks of somebody who may have the last word towards the client. */
export interface RelayGuard {
  /** Watches what the client sends; it is passed on as it is. */
  fromDownstream(chunk: Uint8Array): void;
  /** Passes on what the upstream sends, through `pass`, in pieces that end where a last word can be put. */
  fromUpstream(chunk: Uint8Array, pass: (bytes: Uint8Array) => void): void;
  /** The bytes with which to tell the client of a failure, or undefined when it cannot be told. */
  lastWord(message: string): Uint8Array | undefined;
  /** True when the upstream has said how the session ended. */
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
export class StatusGuard implements RelayGuard {
  readonly #speaksJson: boolean;
  readonly #splitter: FrameSplitter;
  #clientFrames: FrameDecoder | undefined;
  #pass: (bytes: Uint8Array) => void = () => {};
  #errorStreamId: number | undefined;
  #isReplied = false;
  #isOpaque = false;
  #hasStatus = false;

  /** `version`: the X-Stream-Protocol-Version that the upstream chose. */
  constructor(version: string, limits: SpdyLimits) {
    this.#speaksJson = isRemoteCommandVersion(version) && specOf(version).hasStatusJson;
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
        onPayload: (streamId) => {
          if (streamId === this.#errorStreamId) this.#hasStatus = true;
        },
        onReply: (streamId) => {
          if (streamId === this.#errorStreamId) this.#isReplied = true;
        },
        // Up to v3 success is an error stream that ends empty.
        onFinish: (streamId) => {
          if (streamId === this.#errorStreamId && !this.#speaksJson) this.#hasStatus = true;
        },
      },
      limits.maxControlFrameBytes,
    );
  }

  get hasStatus(): boolean {
    return this.#hasStatus;
  }

  fromDownstream(chunk: Uint8Array): void {
    try {
      this.#clientFrames?.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#clientFrames = undefined;
    }
  }

  fromUpstream(chunk: Uint8Array, pass: (bytes: Uint8Array) => void): void {
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

  lastWord(message: string): Uint8Array | undefined {
    const streamId = this.#errorStreamId;
    // Clients drop DATA on a stream that was not replied to; their own time-out tells them of a failure then.
    if (streamId === undefined || !this.#isReplied || this.#isOpaque || this.#hasStatus) return undefined;
    const status = this.#statusBytes(message);
    const frame = new Uint8Array(DATA_HEADER_BYTES + status.byteLength);
    writeDataHeader(frame, 0, streamId, status.byteLength, true);
    frame.set(status, DATA_HEADER_BYTES);
    return frame;
  }

  #statusBytes(message: string): Uint8Array {
    return this.#speaksJson ? encodeStatus(internalErrorStatus(message)) : new TextEncoder().encode(message);
  }
}
