import { defaultSpdyLimits, GOAWAY, MAX_STREAM_ID, RST, type SpdyLimits } from "./constants.ts";
import { FrameDecoder, type HeaderBlocks } from "./frame-decoder.ts";
import { FrameEncoder } from "./frame-encoder.ts";
import type { ControlFrame } from "./frames/control-frame.ts";
import type { SynStreamFrame } from "./frames/stream-frames.ts";
import type { SpdyHeaders } from "./header-block.ts";
import { SessionStream, type SpdyStream, type SpdyStreamHandler, type StreamEnd } from "./stream.ts";

export interface SpdySessionHandler {
  /**
   * Bytes for the wire, in order. The session never changes them afterwards; the payload of write()
   * belongs to its caller.
   */
  send(bytes: Uint8Array): void;
  /** The peer opened a stream. Return its handler to accept it (the session replies at once), or an RST status to refuse it. */
  onStream(stream: SpdyStream): SpdyStreamHandler | number;
  /** The peer answered the ping with this id. */
  onPong?(id: number): void;
  /** The peer ended the session. The streams' onEnd follow. */
  onGoAway?(lastGoodStreamId: number, status: number): void;
}

const NO_BYTES = new Uint8Array(0);

/**
 * One SPDY/3.1 connection as Kubernetes' peers speak it: no flow control, no settings, and GOAWAY
 * ends it. Does no I/O. To slow the peer down, stop calling receive(): the wire has no other
 * backpressure.
 */
export class SpdySession {
  readonly #role: "client" | "server";
  readonly #handler: SpdySessionHandler;
  readonly #limits: SpdyLimits;
  readonly #decoder: FrameDecoder;
  readonly #encoder = new FrameEncoder();
  readonly #streams = new Map<number, SessionStream>();
  /** The stream of the last DATA frame. Usually one stream sends most frames. */
  #latestStream: SessionStream | undefined;
  #nextStreamId: number;
  #nextPingId: number;
  #lastReceivedStreamId = 0;
  #hasSentGoAway = false;
  #isOver = false;

  /**
   * A client inflates header blocks only if told to (see `FrameDecoder`). Otherwise its peer cannot
   * open streams.
   */
  constructor(
    role: "client" | "server",
    handler: SpdySessionHandler,
    limits: SpdyLimits = defaultSpdyLimits,
    headerBlocks: HeaderBlocks = role === "client" ? "skip" : "inflate",
  ) {
    this.#role = role;
    this.#handler = handler;
    this.#limits = limits;
    this.#nextStreamId = role === "client" ? 1 : 2;
    this.#nextPingId = this.#nextStreamId;
    this.#decoder = new FrameDecoder(
      {
        onData: (streamId, part, fin) => this.#receiveData(streamId, part, fin),
        onControl: (frame) => this.#receiveControl(frame),
      },
      limits,
      headerBlocks,
    );
  }

  get openStreamCount(): number {
    return this.#streams.size;
  }

  /**
   * True after the peer's GOAWAY, the connection's end, or a ProtocolError. Nothing is received or
   * sent any more.
   */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Throws ProtocolError if the peer violates the protocol. The session is then over, and its
   * streams got onEnd.
   */
  receive(chunk: Uint8Array): void {
    try {
      this.#decoder.push(chunk);
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  /** The connection ended, cleanly or not. */
  receiveEnd(): void {
    this.#end();
  }

  /** Throws Error if the session is over, after goAway(), and after 2^30 streams, when ids run out. */
  openStream(
    headers: SpdyHeaders | readonly (readonly [string, string])[],
    handler: SpdyStreamHandler,
  ): SpdyStream {
    const streamId = this.#nextStreamId;
    if (this.#isOver || this.#hasSentGoAway || streamId > MAX_STREAM_ID) {
      throw new Error("the SPDY session opens no more streams");
    }
    this.#nextStreamId += 2;
    const frame: SynStreamFrame = {
      type: "SYN_STREAM",
      streamId,
      associatedStreamId: 0,
      // spdystream sorts its queue by priority; one priority for all keeps our order.
      priority: 0,
      fin: false,
      unidirectional: false,
      headers: new Map(headers),
    };
    const stream = new SessionStream(this.#streamSession, frame, handler);
    this.#streams.set(streamId, stream);
    this.#sendControl(frame);
    return stream;
  }

  /** Sends a PING and returns its id, which onPong brings back. */
  ping(): number {
    const id = this.#nextPingId;
    this.#nextPingId += 2;
    // Ids start over before they exceed 32 bits; the first ones have been answered by then.
    if (this.#nextPingId > MAX_STREAM_ID) this.#nextPingId = this.#role === "client" ? 1 : 2;
    this.#sendControl({ type: "PING", id });
    return id;
  }

  /**
   * Sends GOAWAY, once, even if the session is over. Go peers stop reading at it, so send it after
   * all data. Open streams stay open; new ones from the peer are ignored (SPDY/3 section 2.6.6).
   */
  goAway(status: number = GOAWAY.OK): void {
    if (this.#hasSentGoAway) return;
    this.#hasSentGoAway = true;
    this.#handler.send(
      this.#encoder.encode({ type: "GOAWAY", lastGoodStreamId: this.#lastReceivedStreamId, status }),
    );
  }

  readonly #streamSession = {
    send: (bytes: Uint8Array): void => this.#send(bytes),
    sendControl: (frame: ControlFrame): void => this.#sendControl(frame),
    forget: (stream: SessionStream): void => {
      this.#streams.delete(stream.id);
      if (this.#latestStream === stream) this.#latestStream = undefined;
    },
  };

  #send(bytes: Uint8Array): void {
    if (!this.#isOver) this.#handler.send(bytes);
  }

  #sendControl(frame: ControlFrame): void {
    if (!this.#isOver) this.#handler.send(this.#encoder.encode(frame));
  }

  // DATA may arrive before the SYN_REPLY. spdystream drops it; we deliver it, because it is the
  // start of an output.
  #receiveData(streamId: number, part: Uint8Array, fin: boolean): void {
    let stream = this.#latestStream;
    if (stream === undefined || stream.id !== streamId) {
      stream = this.#streams.get(streamId);
      // The stream was reset while the frame was in flight, or never existed: spdystream ignores
      // both.
      if (stream === undefined) return;
      this.#latestStream = stream;
    }
    stream.receiveData(part, fin);
  }

  #receiveControl(frame: ControlFrame): void {
    switch (frame.type) {
      case "SYN_STREAM":
        this.#receiveSynStream(frame);
        return;
      case "SYN_REPLY":
        this.#streams.get(frame.streamId)?.receiveReply(frame.fin);
        return;
      case "HEADERS":
        // Kubernetes never reads these headers; only their FIN matters.
        if (frame.fin) this.#receiveData(frame.streamId, NO_BYTES, true);
        return;
      case "RST_STREAM":
        this.#streams.get(frame.streamId)?.receiveEnd({ type: "reset", status: frame.status });
        return;
      case "PING":
        this.#receivePing(frame.id);
        return;
      case "GOAWAY":
        this.#handler.onGoAway?.(frame.lastGoodStreamId, frame.status);
        this.#end();
        return;
      // Kubernetes' peers send neither and ignore both: windows are infinite.
      case "SETTINGS":
      case "WINDOW_UPDATE":
        return;
    }
  }

  #receiveSynStream(frame: SynStreamFrame): void {
    if (this.#hasSentGoAway) return;
    const refusal = this.#refusalOf(frame.streamId);
    if (refusal !== RST.PROTOCOL_ERROR) this.#lastReceivedStreamId = frame.streamId;
    if (refusal !== undefined) {
      this.#sendControl({ type: "RST_STREAM", streamId: frame.streamId, status: refusal });
      return;
    }
    const stream = new SessionStream(this.#streamSession, frame);
    this.#streams.set(stream.id, stream);
    const answer = this.#handler.onStream(stream);
    if (typeof answer === "number") {
      stream.reset(answer);
      return;
    }
    stream.accept(answer);
    if (frame.fin) stream.receiveData(NO_BYTES, true);
  }

  #refusalOf(streamId: number): number | undefined {
    const isOurParity = streamId % 2 === this.#nextStreamId % 2;
    if (isOurParity || streamId <= this.#lastReceivedStreamId) return RST.PROTOCOL_ERROR;
    if (this.#streams.size >= this.#limits.maxStreams) return RST.REFUSED_STREAM;
    return undefined;
  }

  #receivePing(id: number): void {
    if (id % 2 === this.#nextPingId % 2) this.#handler.onPong?.(id);
    else this.#sendControl({ type: "PING", id });
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#decoder.stop();
    const end: StreamEnd = { type: "session-ended" };
    for (const stream of [...this.#streams.values()]) stream.receiveEnd(end);
  }
}
