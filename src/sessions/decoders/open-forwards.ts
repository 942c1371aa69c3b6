import { closeCodeFor, reasonOf, type SessionEnd } from "@sluice/client/internal/sessions/session-end";
import { ProtocolError } from "@sluice/protocols";
import { forwardErrorText, parseStreamHeaders } from "@sluice/protocols/portforward";
import {
  DATA_HEADER_BYTES,
  encodeGoAway,
  encodeRstStream,
  FrameDecoder,
  GOAWAY,
  RST,
  type SpdyLimits,
  type SynStreamFrame,
  writeDataHeader,
} from "@sluice/protocols/spdy";
import { CLOSE } from "@sluice/protocols/websocket";
import type { Side } from "../observers/session-observer.ts";

interface OpenForward {
  /** Absent: the node refuses the stream's headers. */
  readonly type?: "data" | "error" | undefined;
  readonly port?: number | undefined;
  readonly connection?: string | undefined;
  /** Clients drop the DATA of a stream without a reply. */
  isAccepted: boolean;
  isClientDone: boolean;
  isNodeDone: boolean;
}

/**
 * Follows a port-forward's streams by their control frames, so that the gateway can end each of them,
 * with the reason, when it ends the session.
 */
export class OpenForwards {
  readonly #maxStreams: number;
  readonly #nodeFrames: FrameDecoder;
  readonly #streams = new Map<number, OpenForward>();
  #isNodeFollowed = true;
  #lastStreamId = 0;

  constructor(limits: SpdyLimits) {
    this.#maxStreams = limits.maxStreams;
    this.#nodeFrames = new FrameDecoder(
      {
        onData: () => {},
        onControl: (frame) => {
          if (frame.type === "SYN_REPLY") this.#replied(frame.streamId, frame.fin);
          else if (frame.type === "RST_STREAM") this.reset(frame.streamId);
        },
      },
      limits,
      "skip",
    );
  }

  /** Streams beyond the connection's bound are not followed: nodes refuse them. */
  opened({ streamId, headers, fin }: SynStreamFrame): void {
    this.#lastStreamId = streamId;
    if (this.#streams.size >= this.#maxStreams) return;
    const parsed = parseStreamHeaders(streamId, headers);
    this.#streams.set(streamId, {
      ...(parsed.ok && {
        type: parsed.value.streamType,
        port: parsed.value.port,
        connection: parsed.value.requestId,
      }),
      isAccepted: false,
      isClientDone: fin,
      isNodeDone: false,
    });
  }

  reset(streamId: number): void {
    this.#streams.delete(streamId);
  }

  finished(side: Side, streamId: number): void {
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return;
    if (side === "client") stream.isClientDone = true;
    else stream.isNodeDone = true;
    if (stream.isClientDone && stream.isNodeDone) this.#streams.delete(streamId);
  }

  /** Pieces of the node's control frames. Those after a malformed one are not read. */
  nodeControl(bytes: Uint8Array): void {
    if (!this.#isNodeFollowed) return;
    try {
      this.#nodeFrames.push(bytes);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#isNodeFollowed = false;
    }
  }

  /**
   * Frames that end the session for its client: the reason on the error stream of each unfinished
   * connection, RST_STREAM for other open streams, then GOAWAY.
   */
  farewell(end: SessionEnd): Uint8Array {
    const cut = new Set<string | undefined>();
    for (const { type, connection, isNodeDone } of this.#streams.values())
      if (type === "data" && !isNodeDone) cut.add(connection);
    const reasons: Uint8Array[] = [];
    const resets: Uint8Array[] = [];
    for (const [streamId, { type, port, connection, isAccepted, isNodeDone }] of this.#streams) {
      const isTold =
        type === "error" && port !== undefined && isAccepted && !isNodeDone && cut.has(connection);
      if (isTold) reasons.push(lastData(streamId, forwardErrorText(port, reasonOf(end))));
      else resets.push(encodeRstStream({ type: "RST_STREAM", streamId, status: RST.CANCEL }));
    }
    const status = goAwayStatusOf(end);
    const goAway = encodeGoAway({ type: "GOAWAY", lastGoodStreamId: this.#lastStreamId, status });
    return Buffer.concat([...reasons, ...resets, goAway]);
  }

  #replied(streamId: number, fin: boolean): void {
    const stream = this.#streams.get(streamId);
    if (stream !== undefined) stream.isAccepted = true;
    if (fin) this.finished("node", streamId);
  }
}

function lastData(streamId: number, payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(DATA_HEADER_BYTES + payload.byteLength);
  writeDataHeader(frame, 0, streamId, payload.byteLength, true);
  frame.set(payload, DATA_HEADER_BYTES);
  return frame;
}

/** The status of the GOAWAY that ends a client's session. */
export function goAwayStatusOf(end: SessionEnd): number {
  const closeCode = closeCodeFor(end);
  if (closeCode === CLOSE.POLICY_VIOLATION) return GOAWAY.PROTOCOL_ERROR;
  return closeCode === CLOSE.INTERNAL_ERROR ? GOAWAY.INTERNAL_ERROR : GOAWAY.OK;
}
