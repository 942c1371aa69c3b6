import { poisonFreed } from "@sluice/client/internal/net/freed-memory";
import { Base64Decoder, type ChannelFraming } from "@sluice/protocols/remotecommand";
import { applyMask } from "@sluice/protocols/websocket";

const ZERO_DIGIT = 0x30;
const SCRATCH_BYTES = 64 * 1024;

/** Shared by all sessions. A view of it is valid for one call. */
let scratch: Uint8Array | undefined;

/**
 * Reads the channels of one side's messages. The first byte names the channel, in whichever frame it
 * comes. Unlike ChannelDemux it validates nothing.
 */
export class ChannelReader {
  readonly #isBase64: boolean;
  readonly #isWanted: (channel: number) => boolean;
  readonly #see: (channel: number, part: Uint8Array) => void;
  #channel = -1;
  #isChannelDue = false;
  #isSeen = false;
  #base64: Base64Decoder | undefined;

  /**
   * `isWanted`: called for each message; the payload of unwanted channels is skipped. `see`: gets
   * parts that are never empty.
   */
  constructor(
    { isBase64 }: Pick<ChannelFraming, "isBase64">,
    isWanted: (channel: number) => boolean,
    see: (channel: number, part: Uint8Array) => void,
  ) {
    this.#isBase64 = isBase64;
    this.#isWanted = isWanted;
    this.#see = see;
  }

  startMessage(): void {
    this.#isChannelDue = true;
    this.#isSeen = false;
  }

  /** Skips the rest of a message, because part of its payload was not read. */
  skip(): void {
    this.#isChannelDue = this.#isSeen = false;
  }

  /** Throws ProtocolError for invalid base64. */
  payload(chunk: Uint8Array, start: number, end: number): void {
    let at = start;
    if (this.#isChannelDue) {
      this.#isChannelDue = false;
      const first = chunk[at++] as number;
      this.#channel = this.#isBase64 ? first - ZERO_DIGIT : first;
      this.#isSeen = this.#isWanted(this.#channel);
      this.#base64 = this.#isSeen && this.#isBase64 ? new Base64Decoder() : undefined;
    }
    if (!this.#isSeen || at === end) return;
    const part = chunk.subarray(at, end);
    const payload = this.#base64 === undefined ? part : this.#base64.push(part, false);
    if (payload.byteLength > 0) this.#see(this.#channel, payload);
  }
  /** Like `payload`, for bytes that are still masked. Does not change the chunk. */
  maskedPayload(chunk: Uint8Array, start: number, end: number, maskKey: number, maskPhase: number): void {
    scratch ??= new Uint8Array(SCRATCH_BYTES);
    let phase = maskPhase;
    for (let at = start; at < end; at += SCRATCH_BYTES) {
      const view = scratch.subarray(0, Math.min(end - at, SCRATCH_BYTES));
      view.set(chunk.subarray(at, at + view.byteLength));
      phase = applyMask(view, maskKey, phase);
      this.payload(view, 0, view.byteLength);
      poisonFreed(view);
    }
  }
}
