import { faultOf, reasonOf, type SessionEnd, statusOf } from "@sluice/client/internal/sessions/session-end";
import { ProtocolError } from "@sluice/protocols";
import { NOTHING } from "@sluice/protocols/bytes";
import { encodeStatus, type RemoteCommandVersion, specOf } from "@sluice/protocols/remotecommand";
import {
  type ControlFrame,
  DATA_HEADER_BYTES,
  FrameDecoder,
  FrameSplitter,
  HeartbeatFilter,
  type SpdyLimits,
  writeDataHeader,
} from "@sluice/protocols/spdy";
import type { CommandEndObserver } from "../observers/end-observer.ts";
import { RESIZE, type SessionStream, STDERR, STDIN, STDOUT } from "../observers/session-observer.ts";
import type { SessionObservers } from "../observers/session-observers.ts";
import type { KeptReport, Pass, PassThroughDecoder } from "./pass-through-decoder.ts";
import { SpdyPings } from "./spdy-pings.ts";

const STREAMS: Readonly<Record<string, SessionStream>> = {
  stdin: STDIN,
  stdout: STDOUT,
  stderr: STDERR,
  resize: RESIZE,
};

/**
 * Decodes an exec or attach over SPDY. It cuts the node's bytes between frames, so that it can report
 * a failure: client-go takes an error stream that ends empty for exit code 0.
 */
export class SpdyCommandDecoder implements PassThroughDecoder {
  readonly isSpdy = true;
  readonly #version: RemoteCommandVersion;
  readonly #observers: SessionObservers;
  readonly #ends: CommandEndObserver;
  readonly #splitter: FrameSplitter;
  readonly #clientFilter: HeartbeatFilter;
  readonly #pings = new SpdyPings();
  /** The session's streams by id, at most 5 with the error stream; kept for observers that come later. */
  readonly #streams = new Map<number, SessionStream>();
  readonly #limits: SpdyLimits;
  /** Absent while no observer sees the client's payload. */
  #clientFrames: FrameDecoder | undefined;
  #isClientOpaque = false;
  /** The client's current chunk. */
  #clientChunk: Uint8Array = NOTHING;
  #passUp: Pass = () => {};
  #pass: Pass = () => {};
  #errorStreamId: number | undefined;
  #isReplied = false;
  #hasStdinEnded = false;
  #hasStdoutEnded = false;
  #isOpaque = false;
  #refusal: SessionEnd | undefined;
  #report: KeptReport | undefined;

  constructor(
    version: RemoteCommandVersion,
    limits: SpdyLimits,
    observers: SessionObservers,
    ends: CommandEndObserver,
  ) {
    this.#version = version;
    this.#limits = limits;
    this.#observers = observers;
    this.#ends = ends;
    this.#clientFilter = new HeartbeatFilter({
      onBytes: (bytes) => {
        if (this.#refusal === undefined) this.#passUp(bytes);
      },
      onPing: (id) => this.#pings.fromClient(id),
      onGoAway: () => ends.clientLeft("the client ended the session"),
      onFinish: (streamId) => {
        if (this.#streams.get(streamId) === STDIN) this.#hasStdinEnded = true;
      },
      onBoundary: () => this.#decodeClientFrom(this.#clientFilter.passedBytes),
    });
    this.#clientFrames = this.#clientDecoder("inflate");
    this.#splitter = new FrameSplitter(
      {
        onBytes: (bytes) => this.#pass(bytes),
        onPayload: (streamId, bytes, start, end) => this.#nodePayload(streamId, bytes, start, end),
        onReply: (streamId) => {
          if (streamId === this.#errorStreamId) this.#isReplied = true;
        },
        onFinish: (streamId) => {
          if (this.#streams.get(streamId) === STDOUT) this.#hasStdoutEnded = true;
          if (streamId !== this.#errorStreamId) return;
          // Servers of v1 reset it before the command starts.
          if (version !== "channel.k8s.io") this.#reportBegins();
          observers.statusEnd();
        },
        onGoAway: () => {
          this.#reportBegins();
          ends.nodeLeft(true);
        },
        onPing: (id) => this.#pings.fromNode(id),
      },
      limits.maxControlFrameBytes,
    );
  }

  fromClient(chunk: Uint8Array, pass: Pass): SessionEnd | undefined {
    if (this.#clientFrames !== undefined) this.#decodeClient(this.#clientFrames, chunk);
    else if (this.#isClientWanted && !this.#isClientOpaque) this.#clientFilter.awaitBoundary();
    if (this.#refusal !== undefined) return this.#refusal;
    this.#passUp = pass;
    this.#clientChunk = chunk;
    this.#clientFilter.push(chunk);
    this.#clientChunk = NOTHING;
    return this.#refusal;
  }

  fromNode(chunk: Uint8Array, pass: Pass): SessionEnd | undefined {
    if (this.#isOpaque) {
      pass(chunk);
      return undefined;
    }
    this.#pass = pass;
    try {
      this.#splitter.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      // The splitter's buffered bytes are lost, so later bytes cannot be decoded.
      this.#isOpaque = true;
      return faultOf("node", "protocol-error", `the node sent malformed SPDY: ${error.message}`);
    }
    return this.#refusal;
  }

  keepReport(report: KeptReport): void {
    this.#report = report;
  }

  /** The client's bytes always end with a whole frame, so the answer can follow at any time. */
  answerClient(): Uint8Array | undefined {
    return this.#isOpaque ? undefined : this.#pings.answerClient();
  }

  answerNode(): Uint8Array | undefined {
    return this.#clientFilter.isBetweenFrames ? this.#pings.answerNode() : undefined;
  }

  beatNode(): Uint8Array | undefined {
    return this.#clientFilter.isBetweenFrames ? this.#pings.beatNode() : undefined;
  }

  get readsInput(): boolean {
    return !this.#hasStdinEnded && !this.#isOpaque && !this.#ends.hasClientLeft;
  }

  input(bytes: Uint8Array, by: string): Uint8Array | SessionEnd | undefined {
    const streamId = this.#idOf(STDIN);
    // The client has not opened its streams, or the node has not taken them.
    if (streamId === undefined || !this.#isReplied || !this.#clientFilter.isBetweenFrames) return undefined;
    const refusal = this.#observers.data({ ...STDIN, by }, "client", bytes);
    return refusal ?? dataFrame(streamId, bytes, false);
  }

  outputFrame(text: Uint8Array): Uint8Array | undefined {
    const streamId = this.#hasStdoutEnded ? undefined : this.#idOf(STDOUT);
    if (streamId === undefined || !this.#isReplied || this.#isOpaque) return undefined;
    return this.#ends.hasStatus || this.#refusal ? undefined : dataFrame(streamId, text, false);
  }

  failureFrame(message: string, end: SessionEnd): Uint8Array | undefined {
    const streamId = this.#errorStreamId;
    // Clients drop DATA on a stream without a reply; their own timeout then reports the failure.
    if (streamId === undefined || !this.#isReplied || this.#isOpaque) return undefined;
    if (this.#ends.hasStatus && !this.#isReportKept) return undefined;
    const status = specOf(this.#version).hasStatusJson
      ? encodeStatus(statusOf(end, message))
      : new TextEncoder().encode(reasonOf(end, message));
    return dataFrame(streamId, status, true);
  }

  /** v1 servers have reset the error stream, so it takes no Status. */
  get #isReportKept(): boolean {
    return this.#report?.kept !== undefined && this.#version !== "channel.k8s.io";
  }

  #reportBegins(): void {
    if (this.#report?.hasBegun !== false) return;
    this.#splitter.passBeforeFrame();
    this.#report.begin({ isInFrame: false, isInMessage: false });
  }

  #idOf(wanted: SessionStream): number | undefined {
    for (const [streamId, stream] of this.#streams) if (stream === wanted) return streamId;
    return undefined;
  }

  get #isClientWanted(): boolean {
    return this.#observers.showsClient || this.#observers.showsEnds;
  }

  #clientDecoder(headerBlocks: "inflate" | "skip"): FrameDecoder {
    return new FrameDecoder(
      {
        onData: (streamId, part, fin) => this.#fromClient(streamId, part, fin),
        onControl: (frame) => this.#clientControl(frame),
      },
      this.#limits,
      headerBlocks,
    );
  }

  #decodeClient(frames: FrameDecoder, bytes: Uint8Array): void {
    try {
      frames.push(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#clientFrames = undefined;
      this.#isClientOpaque = true;
      this.#refusal ??= this.#observers.undecodable("client", error.message);
    }
  }

  /**
   * An observer was added: decodes from this boundary in the chunk on, with the streams known so
   * far.
   */
  #decodeClientFrom(start: number): void {
    if (start === this.#clientChunk.byteLength) return;
    this.#clientFrames = this.#clientDecoder("skip");
    this.#decodeClient(this.#clientFrames, this.#clientChunk.subarray(start));
  }

  /** Clients open all streams before payload moves. From then on only observers need their frames. */
  #payloadMoves(): void {
    if (this.#errorStreamId === undefined || this.#isClientWanted) return;
    this.#clientFrames?.stop();
    this.#clientFrames = undefined;
  }

  #clientControl(frame: ControlFrame): void {
    if (frame.type === "RST_STREAM") this.#clientEnded(frame.streamId);
    if (frame.type !== "SYN_STREAM") return;
    const type = frame.headers.get("streamtype") ?? "";
    const stream = STREAMS[type];
    if (stream !== undefined && this.#streams.size < Object.keys(STREAMS).length) {
      this.#streams.set(frame.streamId, stream);
    }
    if (type === "error") this.#errorStreamId = frame.streamId;
  }

  #fromClient(streamId: number, part: Uint8Array, fin: boolean): void {
    this.#payloadMoves();
    const stream = this.#streams.get(streamId);
    if (stream !== undefined && part.byteLength > 0)
      this.#refusal ??= this.#observers.data(stream, "client", part);
    if (fin) this.#clientEnded(streamId);
  }

  #clientEnded(streamId: number): void {
    if (this.#streams.get(streamId) === STDIN) this.#observers.streamEnd(STDIN, "client");
  }

  #nodePayload(streamId: number, bytes: Uint8Array, start: number, end: number): void {
    if (this.#clientFrames !== undefined) this.#payloadMoves();
    if (streamId === this.#errorStreamId) {
      this.#reportBegins();
      this.#observers.status(bytes.subarray(start, end));
    } else if (this.#observers.showsNode) {
      const stream = this.#streams.get(streamId);
      if (stream === undefined) return;
      this.#refusal ??= this.#observers.data(stream, "node", bytes.subarray(start, end));
      if (this.#refusal !== undefined) this.#splitter.stop();
    }
  }
}

function dataFrame(streamId: number, payload: Uint8Array, fin: boolean): Uint8Array {
  const frame = new Uint8Array(DATA_HEADER_BYTES + payload.byteLength);
  writeDataHeader(frame, 0, streamId, payload.byteLength, fin);
  frame.set(payload, DATA_HEADER_BYTES);
  return frame;
}
