import {
  type ControlFrame,
  DATA_HEADER_BYTES,
  defaultSpdyLimits,
  FrameDecoder,
  FrameEncoder,
  type SpdyHeaders,
  SpdySession,
  type SpdyStream,
  type SpdyStreamHandler,
  type StreamEnd,
  writeDataHeader,
} from "../../protocols/spdy/index.ts";

export type SeenFrame = ControlFrame | { type: "DATA"; streamId: number; text: string; fin: boolean };

/** The bytes of a complete DATA frame. */
export function dataFrame(streamId: number, text: string, fin = false): Uint8Array {
  const payload = new TextEncoder().encode(text);
  const frame = new Uint8Array(DATA_HEADER_BYTES + payload.length);
  writeDataHeader(frame, 0, streamId, payload.length, fin);
  frame.set(payload, DATA_HEADER_BYTES);
  return frame;
}

export function synStream(
  streamId: number,
  more: { fin?: boolean; unidirectional?: boolean; headers?: SpdyHeaders } = {},
): ControlFrame {
  const { fin = false, unidirectional = false, headers = new Map([["streamtype", "stdin"]]) } = more;
  return { type: "SYN_STREAM", streamId, associatedStreamId: 0, priority: 0, fin, unidirectional, headers };
}

/** Decodes as a Go peer does, and records each DATA part and control frame. */
export function frameRecorder(): { push(chunk: Uint8Array): void; take(): SeenFrame[] } {
  let seen: SeenFrame[] = [];
  const decoder = new FrameDecoder(
    {
      onData: (streamId, part, fin) =>
        seen.push({ type: "DATA", streamId, text: new TextDecoder().decode(part), fin }),
      onControl: (frame) => seen.push(frame),
    },
    defaultSpdyLimits,
  );
  return {
    push: (chunk) => decoder.push(chunk),
    take: () => {
      const taken = seen;
      seen = [];
      return taken;
    },
  };
}

/** The events of one stream of the session under test, as text. */
export class StreamLog implements SpdyStreamHandler {
  readonly events: string[] = [];
  onData(part: Uint8Array, fin: boolean): void {
    this.events.push(`${new TextDecoder().decode(part)}${fin ? " FIN" : ""}`);
  }
  onEnd(end: StreamEnd): void {
    this.events.push(end.type === "reset" ? `reset ${end.status}` : end.type);
  }
  onReply(fin: boolean): void {
    this.events.push(fin ? "reply FIN" : "reply");
  }
}

/**
 * A session under test and the peer that a test scripts: `send` delivers frames to it, `take`
 * returns its frames.
 */
export class ScriptedSpdyPeer {
  readonly session: SpdySession;
  readonly streams: SpdyStream[] = [];
  readonly logs: StreamLog[] = [];
  readonly events: string[] = [];
  readonly #encoder = new FrameEncoder();
  readonly #recorder = frameRecorder();

  constructor(
    role: "client" | "server",
    options: {
      onStream?: (stream: SpdyStream, log: StreamLog) => SpdyStreamHandler | number;
      limits?: Partial<typeof defaultSpdyLimits>;
      headerBlocks?: "inflate" | "skip";
    } = {},
  ) {
    this.session = new SpdySession(
      role,
      {
        send: (bytes) => this.#recorder.push(bytes),
        onStream: (stream) => {
          const log = new StreamLog();
          this.streams.push(stream);
          this.logs.push(log);
          return options.onStream?.(stream, log) ?? log;
        },
        onPong: (id) => this.events.push(`pong ${id}`),
        onGoAway: (last, status) => this.events.push(`goaway ${last} ${status}`),
      },
      { ...defaultSpdyLimits, ...options.limits },
      options.headerBlocks ?? (role === "client" ? "skip" : "inflate"),
    );
  }

  /** Delivers frames in one chunk. */
  send(...frames: (ControlFrame | Uint8Array)[]): void {
    const pieces = frames.map((frame) => (frame instanceof Uint8Array ? frame : this.#encoder.encode(frame)));
    this.session.receive(new Uint8Array(pieces.flatMap((piece) => [...piece])));
  }

  /** The frames that the session has sent since the last call. */
  take(): SeenFrame[] {
    return this.#recorder.take();
  }
}
