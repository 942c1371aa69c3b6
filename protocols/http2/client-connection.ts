import { NOTHING, readUint32 } from "../bytes/index.ts";
import { FrameDecoder } from "./frame-decoder.ts";
import { encodeFrame } from "./frame-encoder.ts";
import { HeaderBlockReader, tooManyHeaders } from "./header-block-reader.ts";
import { bytesOf, type HeaderEntry } from "./hpack/dynamic-table.ts";
import { ERROR_CODE, Http2Error } from "./http2-error.ts";
import { DEFAULT_MAX_FRAME_BYTES, defaultHttp2Limits, FLAGS, FRAME, type Http2Limits } from "./limits.ts";
import { defaultPeerSettings, withSettings } from "./peer-settings.ts";
import { ReceiveWindow, SendWindow } from "./receive-window.ts";
import { checkFields, type HeaderFields, type ResponseHead, readResponseHead } from "./response-fields.ts";

/** Events of a connection. Byte arrays are valid only during the call; head and fields stay valid. */
export interface ClientConnectionHandler {
  /** Every SETTINGS frame of the server. The first proves that it speaks HTTP/2. */
  onSettings(): void;
  /** The head of the final response. */
  onHead(head: ResponseHead): void;
  /** A server that sends data before any head violates the protocol; this is still called. */
  onData(part: Uint8Array): void;
  onTrailers(fields: HeaderFields): void;
  /**
   * The server has ended the stream; `isByData` if it did so with DATA (possibly empty) instead of
   * a head or trailers.
   */
  onEnd(isByData: boolean): void;
  /** The server reset the stream with this `ERROR_CODE`. */
  onReset(code: number): void;
  /** The server answers no stream after `lastStreamId`. `debug` is the server's text. */
  onGoaway(lastStreamId: number, code: number, debug: Uint8Array): void;
}

const SETTINGS_ACK = encodeFrame(FRAME.SETTINGS, FLAGS.ACK, 0, NOTHING);

/** The one open stream. */
interface OpenStream {
  readonly id: number;
  readonly sendWindow: SendWindow;
  readonly receiveWindow: ReceiveWindow;
  /** The part of the request body that is still to be sent. */
  body: Uint8Array;
  hasHead: boolean;
  headerBytes: number;
}

/**
 * The client's side of one HTTP/2 connection with one request at a time (RFC 9113), as probes need
 * it. Its creator sends `CLIENT_PREFACE_BYTES` first, or calls `begin` with a request that includes
 * them.
 */
export class ClientConnection {
  readonly #handler: ClientConnectionHandler;
  readonly #send: (bytes: Uint8Array) => void;
  readonly #limits: Http2Limits;
  readonly #frames: FrameDecoder;
  readonly #blocks: HeaderBlockReader;
  readonly #sendWindow = new SendWindow();
  readonly #receiveWindow = new ReceiveWindow(0);
  #settings = defaultPeerSettings;
  #hasSettings = false;
  #stream: OpenStream | undefined;
  #lastStreamId = -1;

  /** `send` takes bytes for the socket, in order; the bytes from one `push` may be written together. */
  constructor(
    handler: ClientConnectionHandler,
    send: (bytes: Uint8Array) => void,
    limits: Http2Limits = defaultHttp2Limits,
  ) {
    this.#handler = handler;
    this.#send = send;
    this.#limits = limits;
    this.#blocks = new HeaderBlockReader(limits, (id, isEnd, entries) => this.#onBlock(id, isEnd, entries));
    this.#frames = new FrameDecoder(
      {
        onFrameStart: (type, _, id, bytes) => this.#onFrameStart(type, id, bytes),
        onData: (id, part) => {
          if (id === this.#stream?.id) handler.onData(part);
        },
        onDataEnd: (id, isEnd) => this.#onDataEnd(id, isEnd),
        onFrame: (type, flags, id, payload) => this.#onFrame(type, flags, id, payload),
      },
      limits.maxFrameBytes,
    );
  }

  /** Reads bytes from the server. Throws Http2Error; the connection is finished then. */
  push(chunk: Uint8Array): void {
    this.#frames.push(chunk);
  }

  /** The concurrent streams that the server allows, as far as it has announced a limit. */
  get maxConcurrentStreams(): number {
    return this.#settings.maxConcurrentStreams;
  }

  /** True if the server's bytes so far end with a whole frame. */
  get isBetweenFrames(): boolean {
    return this.#frames.isBetweenFrames;
  }

  /**
   * Sends a request. Call this after the previous one has ended or been forgotten. `encodeHeaders`
   * builds `headers` for stream `nextStreamId`; it sets END_STREAM if the request has no body.
   */
  request(headers: Uint8Array, body: Uint8Array = NOTHING): void {
    const id = this.nextStreamId;
    this.#lastStreamId = id;
    this.#stream = {
      id,
      sendWindow: new SendWindow(this.#settings.initialWindowBytes),
      receiveWindow: new ReceiveWindow(id),
      body,
      hasHead: false,
      headerBytes: 0,
    };
    this.#send(headers);
    this.#sendBody();
  }

  /** Abandons the request: skips the rest of its response and sends no more of its body. */
  forget(): void {
    this.#stream = undefined;
  }

  get nextStreamId(): number {
    return this.#lastStreamId + 2;
  }

  /** Sends a connection's first request from the bytes of `encodeFirstRequest`. */
  begin(bytes: Uint8Array, bodyBytes: number): void {
    this.#sendWindow.take(bodyBytes);
    this.request(bytes);
  }

  #sendBody(): void {
    for (;;) {
      const stream = this.#stream;
      if (stream === undefined || stream.body.length === 0) return;
      const room = Math.min(this.#sendWindow.bytes, stream.sendWindow.bytes, DEFAULT_MAX_FRAME_BYTES);
      if (room <= 0) return;
      const part = stream.body.subarray(0, room);
      stream.body = stream.body.subarray(part.length);
      this.#sendWindow.take(part.length);
      stream.sendWindow.take(part.length);
      const flags = stream.body.length === 0 ? FLAGS.END_STREAM : 0;
      this.#send(encodeFrame(FRAME.DATA, flags, stream.id, part));
    }
  }

  #onFrameStart(type: number, streamId: number, bytes: number): void {
    if (!this.#hasSettings && type !== FRAME.SETTINGS) throw broken("a frame before SETTINGS");
    this.#blocks.checkOrder(type, streamId);
    if (type !== FRAME.DATA) return;
    this.#checkKnown(streamId);
    this.#receiveWindow.receive(bytes);
    if (streamId !== this.#stream?.id) return;
    this.#stream.receiveWindow.receive(bytes);
  }

  #onDataEnd(streamId: number, isEnd: boolean): void {
    this.#receiveWindow.refill(this.#send);
    const stream = this.#stream;
    if (streamId !== stream?.id) return;
    if (isEnd) this.#end(true);
    else stream.receiveWindow.refill(this.#send);
  }

  #onFrame(type: number, flags: number, streamId: number, payload: Uint8Array): void {
    switch (type) {
      case FRAME.SETTINGS:
        this.#onSettings(flags, streamId, payload);
        break;
      case FRAME.HEADERS:
        this.#checkKnown(streamId);
        this.#blocks.onHeaders(flags, streamId, payload);
        break;
      case FRAME.CONTINUATION:
        this.#blocks.onContinuation(flags, payload);
        break;
      case FRAME.RST_STREAM:
        this.#onReset(streamId, payload);
        break;
      case FRAME.GOAWAY:
        this.#onGoaway(streamId, payload);
        break;
      case FRAME.PING:
        this.#onPing(flags, streamId, payload);
        break;
      case FRAME.WINDOW_UPDATE:
        this.#onWindowUpdate(streamId, payload);
        break;
      case FRAME.PRIORITY:
        if (streamId === 0) throw broken("PRIORITY without a stream");
        if (payload.length !== 5) throw wrongLength();
        break;
      default:
        throw broken("a push that was not allowed");
    }
  }

  #onSettings(flags: number, streamId: number, payload: Uint8Array): void {
    if (streamId !== 0) throw broken("SETTINGS on a stream");
    this.#hasSettings = true;
    if ((flags & FLAGS.ACK) !== 0) {
      if (payload.length > 0) throw wrongLength();
      return;
    }
    const before = this.#settings;
    this.#settings = withSettings(before, payload);
    this.#stream?.sendWindow.grow(this.#settings.initialWindowBytes - before.initialWindowBytes);
    this.#send(SETTINGS_ACK);
    this.#sendBody();
    this.#handler.onSettings();
  }

  #onBlock(streamId: number, isEnd: boolean, entries: readonly HeaderEntry[]): void {
    const stream = this.#stream;
    if (stream?.id !== streamId) return;
    for (const entry of entries) stream.headerBytes += bytesOf(entry);
    if (stream.headerBytes > this.#limits.maxHeaderListBytes) throw tooManyHeaders();
    if (stream.hasHead) {
      if (!isEnd) throw broken("trailers that are not the end");
      checkFields(entries);
      this.#handler.onTrailers(entries);
    } else {
      const head = readResponseHead(entries);
      if (head.status !== undefined && head.status < 200) {
        if (!isEnd) return;
        const message = "1xx informational response with END_STREAM flag";
        throw new Http2Error("stream", ERROR_CODE.PROTOCOL_ERROR, message);
      }
      stream.hasHead = true;
      this.#handler.onHead(head);
    }
    if (isEnd && this.#stream === stream) this.#end(false);
  }

  #onPing(flags: number, streamId: number, payload: Uint8Array): void {
    if (streamId !== 0) throw broken("PING on a stream");
    if (payload.length !== 8) throw wrongLength();
    if ((flags & FLAGS.ACK) === 0) this.#send(encodeFrame(FRAME.PING, FLAGS.ACK, 0, payload));
  }

  #onGoaway(streamId: number, payload: Uint8Array): void {
    if (streamId !== 0) throw broken("GOAWAY on a stream");
    if (payload.length < 8) throw wrongLength();
    const lastStreamId = readUint32(payload, 0) & 0x7fff_ffff;
    this.#handler.onGoaway(lastStreamId, readUint32(payload, 4), payload.subarray(8));
  }

  #end(isByData: boolean): void {
    this.#stream = undefined;
    this.#handler.onEnd(isByData);
  }

  #onReset(streamId: number, payload: Uint8Array): void {
    this.#checkKnown(streamId);
    if (payload.length !== 4) throw wrongLength();
    if (streamId !== this.#stream?.id) return;
    this.#stream = undefined;
    this.#handler.onReset(readUint32(payload, 0));
  }

  #onWindowUpdate(streamId: number, payload: Uint8Array): void {
    if (payload.length !== 4) throw wrongLength();
    const bytes = readUint32(payload, 0) & 0x7fff_ffff;
    if (streamId !== 0) this.#checkKnown(streamId);
    if (bytes === 0)
      throw new Http2Error(streamId === 0 ? "connection" : "stream", ERROR_CODE.PROTOCOL_ERROR, "");
    if (streamId === 0) this.#sendWindow.grow(bytes);
    else if (streamId === this.#stream?.id) this.#stream.sendWindow.grow(bytes);
    this.#sendBody();
  }

  /** Frames may arrive late for a finished stream, never for one that was not opened. */
  #checkKnown(streamId: number): void {
    if (streamId % 2 === 0 || streamId > this.#lastStreamId)
      throw broken("a frame on a stream that is not open");
  }
}

function broken(message: string): Http2Error {
  return new Http2Error("connection", ERROR_CODE.PROTOCOL_ERROR, message);
}

function wrongLength(): Http2Error {
  return new Http2Error("connection", ERROR_CODE.FRAME_SIZE_ERROR, "a frame of a wrong length");
}
