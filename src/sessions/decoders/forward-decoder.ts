import type { SessionEnd } from "@sluice/client/internal/sessions/session-end";
import { ProtocolError } from "@sluice/protocols";
import {
  type ControlFrame,
  FrameDecoder,
  HeartbeatFilter,
  type SpdyHeaders,
  type SpdyLimits,
} from "@sluice/protocols/spdy";
import type { Farewells } from "../observers/end-observer.ts";
import type { SessionStream, Side } from "../observers/session-observer.ts";
import type { SessionObservers } from "../observers/session-observers.ts";
import { OpenForwards } from "./open-forwards.ts";
import type { Pass, PassThroughDecoder } from "./pass-through-decoder.ts";
import { SpdyPings } from "./spdy-pings.ts";

interface OpenStream {
  readonly stream: SessionStream;
  endedBy: Side | undefined;
}

/**
 * Decodes a port-forward over SPDY, plain or in a tunnel. It follows the streams by their control
 * frames; only with an observer it also takes DATA apart.
 */
export class ForwardDecoder implements PassThroughDecoder {
  readonly isSpdy = true;
  readonly #observers: SessionObservers;
  readonly #maxStreams: number;
  readonly #clientFilter: HeartbeatFilter;
  readonly #nodeFilter: HeartbeatFilter;
  readonly #pings = new SpdyPings();
  readonly #open: OpenForwards;
  readonly #streams = new Map<number, OpenStream>();
  /** True: the client's frames are decoded whole, for observers; otherwise only its control frames. */
  readonly #isClientWhole: boolean;
  #clientFrames: FrameDecoder | undefined;
  #nodeFrames: FrameDecoder | undefined;
  /**
   * Observers see payload and ends. Decided at the start, because a later observer has missed the
   * streams.
   */
  readonly #isShown: boolean;
  #refusal: SessionEnd | undefined;
  /**
   * True: none of the node's bytes pass. False after a refusal: the rest of its present frame
   * passes.
   */
  #isNodeRefused = false;
  #passUp: Pass = () => {};
  #passDown: Pass = () => {};
  #isStopping = false;
  /** None of the node's bytes pass any more. */
  #isStopped = false;
  hasNodeLeft = false;

  constructor(limits: SpdyLimits, observers: SessionObservers, ends: Farewells) {
    this.#observers = observers;
    this.#maxStreams = limits.maxStreams;
    const clientLeft = (): void => ends.clientLeft("the client ended the session");
    const nodeLeft = (): void => {
      if (this.#isStopped) return;
      this.hasNodeLeft = true;
      ends.nodeLeft(true, "the node ended the session");
    };
    this.#open = new OpenForwards(limits);
    this.#isClientWhole = observers.needsStreams;
    this.#clientFilter = new HeartbeatFilter({
      onBytes: (bytes) => this.#passUp(bytes),
      onPing: (id) => this.#pings.fromClient(id),
      onGoAway: clientLeft,
      onControl: (bytes) => this.#followClient(bytes),
      onFinish: (streamId) => this.#open.finished("client", streamId),
      onBoundary: () => {},
    });
    this.#nodeFilter = new HeartbeatFilter({
      onBytes: (bytes) => {
        if (!this.#isStopped) this.#passDown(bytes);
      },
      onPing: (id) => this.#pings.fromNode(id),
      onGoAway: nodeLeft,
      onControl: (bytes) => {
        if (!this.#isStopped) this.#open.nodeControl(bytes);
      },
      onFinish: (streamId) => {
        if (!this.#isStopped) this.#open.finished("node", streamId);
      },
      onBoundary: () => {
        const answer = this.#pings.answerClient();
        if (answer !== undefined) this.#passDown(answer);
        this.#isStopped = this.#isStopping;
      },
    });
    this.#clientFrames = this.#decoderOf("client", limits);
    this.#isShown = observers.needsNodeStreams;
    if (this.#isShown) this.#nodeFrames = this.#decoderOf("node", limits);
  }

  fromClient(chunk: Uint8Array, pass: Pass): SessionEnd | undefined {
    const end = this.#decodeClient(chunk);
    if (end !== undefined) return end;
    this.#passUp = pass;
    this.#clientFilter.push(chunk);
    return undefined;
  }

  fromNode(chunk: Uint8Array, pass: Pass): SessionEnd | undefined {
    if (this.#nodeFrames !== undefined) this.#decode("node", this.#nodeFrames, chunk);
    if (this.#isNodeRefused || (this.#refusal !== undefined && !this.#isStopping)) return this.#refusal;
    this.#passDown = pass;
    this.#nodeFilter.push(chunk);
    return this.#refusal;
  }

  answerClient(): Uint8Array | undefined {
    if (!this.#pings.isAnswerDue) return undefined;
    if (this.#nodeFilter.isBetweenFrames) return this.#pings.answerClient();
    this.#nodeFilter.awaitBoundary();
    return undefined;
  }

  answerNode(): Uint8Array | undefined {
    return this.#clientFilter.isBetweenFrames ? this.#pings.answerNode() : undefined;
  }

  beatNode(): Uint8Array | undefined {
    return this.#clientFilter.isBetweenFrames ? this.#pings.beatNode() : undefined;
  }

  stop(): boolean {
    this.#isStopping = true;
    if (this.#nodeFilter.isBetweenFrames) this.#isStopped = true;
    else this.#nodeFilter.awaitBoundary();
    return this.#isStopped;
  }

  /** The reason for each connection, RST_STREAM, and GOAWAY: see OpenForwards. */
  failureFrame(_message: string, end: SessionEnd): Uint8Array | undefined {
    if (this.hasNodeLeft || !(this.#isStopped || this.#nodeFilter.isBetweenFrames)) return undefined;
    this.#isStopped = true;
    return this.#open.farewell(end);
  }

  #decodeClient(chunk: Uint8Array): SessionEnd | undefined {
    if (this.#isClientWhole && this.#clientFrames !== undefined && this.#refusal === undefined)
      this.#decode("client", this.#clientFrames, chunk);
    return this.#refusal;
  }

  #followClient(bytes: Uint8Array): void {
    if (this.#isClientWhole || this.#clientFrames === undefined) return;
    try {
      this.#clientFrames.push(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#clientFrames = undefined;
    }
  }

  #refuse(end: SessionEnd | undefined, isNodeRefused: boolean): void {
    if (end === undefined) return;
    this.#refusal ??= end;
    this.#isNodeRefused ||= isNodeRefused;
  }

  #decode(side: Side, frames: FrameDecoder, chunk: Uint8Array): void {
    try {
      frames.push(chunk);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#stop();
      this.#refuse(this.#observers.undecodable(side, error.message), this.#isShown);
    }
  }

  /** Without the client's streams neither side can be decoded. */
  #stop(): void {
    this.#clientFrames?.stop();
    this.#nodeFrames?.stop();
    this.#clientFrames = this.#nodeFrames = undefined;
    this.#streams.clear();
  }

  #decoderOf(side: Side, limits: SpdyLimits): FrameDecoder {
    return new FrameDecoder(
      {
        onData: (streamId, part, fin) => {
          const open = this.#streams.get(streamId);
          if (open === undefined) return;
          if (part.byteLength > 0)
            this.#refuse(this.#observers.data(open.stream, side, part), side === "node");
          if (fin) this.#ended(streamId, open, side);
        },
        onControl: (frame) => this.#control(side, frame),
      },
      limits,
      side === "client" ? "inflate" : "skip",
    );
  }

  #control(side: Side, frame: ControlFrame): void {
    if (side === "client") {
      if (frame.type === "SYN_STREAM") this.#open.opened(frame);
      else if (frame.type === "RST_STREAM") this.#open.reset(frame.streamId);
      if (!this.#isClientWhole) return;
    }
    if (frame.type === "RST_STREAM") {
      const open = this.#streams.get(frame.streamId);
      this.#streams.delete(frame.streamId);
      if (open !== undefined) this.#notifyEnd(open.stream, side);
    } else if (side === "client" && (frame.type === "SYN_STREAM" || frame.type === "HEADERS")) {
      this.#opened(frame.streamId, frame.headers, frame.type === "SYN_STREAM" && frame.fin);
    }
  }

  #opened(streamId: number, headers: SpdyHeaders, fin: boolean): void {
    const known = this.#streams.get(streamId);
    const stream: SessionStream = {
      type: known?.stream.type ?? (headers.get("streamtype") === "data" ? "data" : "error"),
      connection: headers.get("requestid") ?? known?.stream.connection,
      port: headers.get("port") ?? known?.stream.port,
    };
    this.#refuse(this.#observers.stream(stream), false);
    if (!this.#isShown || known !== undefined) return;
    if (this.#streams.size >= this.#maxStreams)
      throw new ProtocolError("too-many-streams", `more than ${this.#maxStreams} streams are open`);
    const open: OpenStream = { stream, endedBy: undefined };
    this.#streams.set(streamId, open);
    if (fin) this.#ended(streamId, open, "client");
  }

  /** Forgets a stream once both sides have ended it. */
  #ended(streamId: number, open: OpenStream, side: Side): void {
    this.#notifyEnd(open.stream, side);
    if (open.endedBy !== undefined) this.#streams.delete(streamId);
    open.endedBy = side;
  }

  /** Clients end their side of an error stream as they open it, so that end is not reported. */
  #notifyEnd(stream: SessionStream, side: Side): void {
    if (side === "node" || stream.type === "data") this.#observers.streamEnd(stream, side);
  }
}
