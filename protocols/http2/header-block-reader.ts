import { ByteCollector } from "../bytes/index.ts";
import type { HeaderEntry } from "./hpack/dynamic-table.ts";
import { HeaderDecoder } from "./hpack/header-decoder.ts";
import { ERROR_CODE, Http2Error } from "./http2-error.ts";
import { FLAGS, FRAME, type Http2Limits } from "./limits.ts";

/** Assembles header blocks from HEADERS and their CONTINUATIONs. */
export class HeaderBlockReader {
  readonly #decoder = new HeaderDecoder();
  readonly #limits: Http2Limits;
  readonly #onBlock: (streamId: number, isEnd: boolean, entries: readonly HeaderEntry[]) => void;
  /** The HEADERS frame that needs a CONTINUATION. */
  #awaited:
    | { readonly streamId: number; readonly isEnd: boolean; readonly block: ByteCollector; frames: number }
    | undefined;

  /** `onBlock` gets the fields of every block, because the decoder must read them all. */
  constructor(
    limits: Http2Limits,
    onBlock: (streamId: number, isEnd: boolean, entries: readonly HeaderEntry[]) => void,
  ) {
    this.#limits = limits;
    this.#onBlock = onBlock;
  }

  /**
   * Call this for every frame: no other frame may come between the parts of a block (RFC 9113
   * section 6.10).
   */
  checkOrder(type: number, streamId: number): void {
    const awaited = this.#awaited;
    const isContinuation = type === FRAME.CONTINUATION;
    if (isContinuation === (awaited !== undefined) && (!isContinuation || awaited?.streamId === streamId))
      return;
    throw new Http2Error("connection", ERROR_CODE.PROTOCOL_ERROR, "a header block that is not whole");
  }

  onHeaders(flags: number, streamId: number, payload: Uint8Array): void {
    let start = 0;
    let end = payload.length;
    if ((flags & FLAGS.PADDED) !== 0) {
      start = 1;
      end -= payload[0] ?? 0;
    }
    if ((flags & FLAGS.PRIORITY) !== 0) start += 5;
    if (start > end) {
      throw new Http2Error("connection", ERROR_CODE.PROTOCOL_ERROR, "more padding than payload");
    }
    const isEnd = (flags & FLAGS.END_STREAM) !== 0;
    const part = payload.subarray(start, end);
    if ((flags & FLAGS.END_HEADERS) !== 0) this.#read(streamId, isEnd, part);
    else {
      const block = new ByteCollector();
      block.append(part);
      this.#awaited = { streamId, isEnd, block, frames: 0 };
    }
  }

  onContinuation(flags: number, payload: Uint8Array): void {
    const awaited = this.#awaited;
    if (awaited === undefined) return;
    const { streamId, isEnd, block } = awaited;
    awaited.frames += 1;
    const { maxHeaderListBytes, maxContinuationFrames } = this.#limits;
    if (awaited.frames > maxContinuationFrames || block.byteLength + payload.length > maxHeaderListBytes)
      throw tooManyHeaders();
    block.append(payload);
    if ((flags & FLAGS.END_HEADERS) === 0) return;
    this.#awaited = undefined;
    this.#read(streamId, isEnd, block.bytes);
  }

  #read(streamId: number, isEnd: boolean, block: Uint8Array): void {
    this.#onBlock(streamId, isEnd, this.#decoder.decode(block, this.#limits.maxHeaderListBytes));
  }
}

export function tooManyHeaders(): Http2Error {
  return new Http2Error("header-list-too-large", ERROR_CODE.ENHANCE_YOUR_CALM, "header list too large");
}
