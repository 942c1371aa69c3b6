import { FLAGS, FRAME } from "./constants.ts";
import { ERROR_CODE } from "./error-codes.ts";
import { concatenated } from "./frame-encoder.ts";
import type { HeaderEntry } from "./hpack/dynamic-table.ts";
import { HeaderDecoder } from "./hpack/header-decoder.ts";
import { Http2Error } from "./http2-error.ts";

/** Header blocks out of HEADERS and their CONTINUATIONs. */
export class HeaderBlockReader {
  readonly #decoder = new HeaderDecoder();
  readonly #maxBytes: number;
  readonly #onBlock: (streamId: number, isEnd: boolean, entries: readonly HeaderEntry[]) => void;
  /** HEADERS whose CONTINUATION is awaited. */
  #awaited: { readonly streamId: number; readonly isEnd: boolean; bytes: Uint8Array } | undefined;

  /** `maxBytes` bounds a block as it comes and as it is decoded. Of every block its fields are told: the decoder needs them all. */
  constructor(
    maxBytes: number,
    onBlock: (streamId: number, isEnd: boolean, entries: readonly HeaderEntry[]) => void,
  ) {
    this.#maxBytes = maxBytes;
    this.#onBlock = onBlock;
  }

  /** To be told of every frame: nothing may come between the parts of a block (RFC 9113 section 6.10). */
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
    else this.#awaited = { streamId, isEnd, bytes: part.slice() };
  }

  onContinuation(flags: number, payload: Uint8Array): void {
    const block = this.#awaited;
    if (block === undefined) return;
    if (block.bytes.length + payload.length > this.#maxBytes) throw tooManyHeaders();
    block.bytes = concatenated([block.bytes, payload]);
    if ((flags & FLAGS.END_HEADERS) === 0) return;
    this.#awaited = undefined;
    this.#read(block.streamId, block.isEnd, block.bytes);
  }

  #read(streamId: number, isEnd: boolean, block: Uint8Array): void {
    this.#onBlock(streamId, isEnd, this.#decoder.decode(block, this.#maxBytes));
  }
}

export function tooManyHeaders(): Http2Error {
  return new Http2Error("header-list-too-large", ERROR_CODE.ENHANCE_YOUR_CALM, "header list too large");
}
