import { ProtocolError } from "../protocol-error.ts";
import type { RemoteCommandSpec } from "./versions.ts";

/** Channel numbers of remotecommand over WebSocket: the first byte of every message. */
export const CHANNEL = { STDIN: 0, STDOUT: 1, STDERR: 2, ERROR: 3, RESIZE: 4, CLOSE: 255 } as const;

/** The highest channel that a CLOSE may name. */
const HIGHEST_CLOSABLE_CHANNEL = CHANNEL.RESIZE;

const ZERO_DIGIT = 0x30;
const CLOSE_PAYLOAD_BYTES = 1;

export interface ChannelHandler {
  /**
   * A part of a message for `channel` (0 to 255, unchecked: the handler drops unknown channels).
   * `part` is a view of the pushed bytes, except for base64; it is empty only with `isLast`.
   */
  onChannelData(channel: number, part: Uint8Array, isLast: boolean): void;
  /** The peer closed this channel, 0..4 (v5 only). May repeat. */
  onChannelClose(channel: number): void;
}

/** The properties of a version that affect how its messages are read. */
export type ChannelFraming = Pick<RemoteCommandSpec, "isBase64" | "hasClose">;

/**
 * Splits WebSocket messages into channels, part by part, without assembling them. Like Kubernetes,
 * reads text and binary messages alike; only the subprotocol decides about base64.
 */
export class ChannelDemux {
  readonly #framing: ChannelFraming;
  readonly #handler: ChannelHandler;
  #channel: number | undefined;
  #base64: Base64Decoder | undefined;
  #closePayload: number[] = [];

  constructor(framing: ChannelFraming, handler: ChannelHandler) {
    this.#framing = framing;
    this.#handler = handler;
  }

  /**
   * `isFirst` and `isLast` mark the parts of a message. Throws ProtocolError for a malformed CLOSE
   * and for invalid base64.
   */
  push(part: Uint8Array, isFirst: boolean, isLast: boolean): void {
    if (isFirst) this.#channel = undefined;
    const first = part[0];
    if (this.#channel === undefined) {
      // An empty message names no channel; servers ignore it.
      if (first === undefined) return;
      this.#startMessage(first);
      part = part.subarray(1);
    }
    this.#pushPayload(part, isLast);
  }

  #startMessage(channelByte: number): void {
    this.#channel = this.#framing.isBase64 ? (channelByte - ZERO_DIGIT) & 0xff : channelByte;
    this.#base64 = this.#framing.isBase64 ? new Base64Decoder() : undefined;
    this.#closePayload = [];
  }

  #pushPayload(part: Uint8Array, isLast: boolean): void {
    const channel = this.#channel;
    if (channel === undefined) return;
    if (channel === CHANNEL.CLOSE && this.#framing.hasClose) {
      this.#pushClose(part, isLast);
      return;
    }
    const payload = this.#base64 === undefined ? part : this.#base64.push(part, isLast);
    if (payload.length > 0 || isLast) this.#handler.onChannelData(channel, payload, isLast);
  }

  #pushClose(part: Uint8Array, isLast: boolean): void {
    if (this.#closePayload.length + part.length > CLOSE_PAYLOAD_BYTES) throw wrongClose();
    this.#closePayload.push(...part);
    if (!isLast) return;
    const [channel] = this.#closePayload;
    if (channel === undefined || channel > HIGHEST_CLOSABLE_CHANNEL) throw wrongClose();
    this.#handler.onChannelClose(channel);
  }
}

function wrongClose(): ProtocolError {
  return new ProtocolError("malformed-message", "CLOSE must be [255, channel] with a channel of 0 to 4");
}

/** The first byte of a message for this channel. */
export function channelByte(channel: number, framing: Pick<RemoteCommandSpec, "isBase64">): number {
  return framing.isBase64 ? channel + ZERO_DIGIT : channel;
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const PADDING = 0x3d;
const INVALID = 0xff;
const characters = Uint8Array.from(ALPHABET, (character) => character.charCodeAt(0));
const values = new Uint8Array(256).fill(INVALID);
characters.forEach((character, value) => {
  values[character] = value;
});

/** Standard base64 with padding, as ASCII bytes. */
export function encodeBase64(bytes: Uint8Array): Uint8Array {
  const encoded = new Uint8Array(Math.ceil(bytes.length / 3) * 4).fill(PADDING);
  let at = 0;
  for (let i = 0; i < bytes.length; i += 3) {
    const left = bytes.length - i;
    const group = ((bytes[i] ?? 0) << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
    encoded[at] = characters[group >> 18] ?? 0;
    encoded[at + 1] = characters[(group >> 12) & 0x3f] ?? 0;
    if (left > 1) encoded[at + 2] = characters[(group >> 6) & 0x3f] ?? 0;
    if (left > 2) encoded[at + 3] = characters[group & 0x3f] ?? 0;
    at += 4;
  }
  return encoded;
}

/**
 * Decodes one message's base64 as it arrives, cut anywhere. Skips line breaks, as Go's decoder
 * does.
 */
export class Base64Decoder {
  #group = 0;
  #groupLength = 0;
  #paddings = 0;

  /** Throws ProtocolError for an invalid character, and for incomplete padding in the last part. */
  push(part: Uint8Array, isLast: boolean): Uint8Array {
    const decoded = new Uint8Array(Math.ceil((part.length + this.#groupLength) / 4) * 3);
    let at = 0;
    for (const character of part) {
      if (character === 0x0d || character === 0x0a) continue;
      this.#take(character);
      if (this.#groupLength < 4) continue;
      decoded[at++] = this.#group >> 16;
      if (this.#paddings < 2) decoded[at++] = (this.#group >> 8) & 0xff;
      if (this.#paddings < 1) decoded[at++] = this.#group & 0xff;
      this.#group = 0;
      this.#groupLength = 0;
    }
    if (isLast && this.#groupLength > 0)
      throw new ProtocolError("malformed-message", "base64 ends within a group");
    return decoded.subarray(0, at);
  }

  #take(character: number): void {
    if (character === PADDING && this.#groupLength >= 2) {
      this.#paddings += 1;
      this.#group <<= 6;
    } else {
      const value = values[character] ?? INVALID;
      if (value === INVALID || this.#paddings > 0) {
        throw new ProtocolError("malformed-message", "a character that is not base64");
      }
      this.#group = (this.#group << 6) | value;
    }
    this.#groupLength += 1;
  }
}
