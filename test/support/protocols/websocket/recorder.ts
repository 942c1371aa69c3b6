import { ProtocolError } from "../../../../protocols/protocol-error.ts";
import {
  closeCodeOf,
  defaultWebSocketLimits,
  WebSocketFrameDecoder,
  type WebSocketLimits,
  type WebSocketRole,
} from "../../../../protocols/websocket/index.ts";

/**
 * A decoder's events, with messages assembled again, so that the record does not depend on how the
 * bytes were cut.
 */
export type Event =
  | { readonly type: "text" | "binary" | "ping" | "pong"; readonly hex: string }
  | { readonly type: "close"; readonly code: number; readonly reason: string }
  | { readonly type: "refused"; readonly closeCode: number };

export class Recorder {
  readonly events: Event[] = [];
  /** Every part as the decoder delivered it. */
  readonly parts: { part: Uint8Array; isFirst: boolean; isLast: boolean }[] = [];
  readonly decoder: WebSocketFrameDecoder;
  #message: Buffer[] = [];
  #isInMessage = false;
  #isTextMessage = false;

  constructor(role: WebSocketRole, limits: Partial<WebSocketLimits> = {}) {
    const handler = {
      onMessage: (part: Uint8Array, isFirst: boolean, isLast: boolean, isText: boolean): void =>
        this.#onMessage(part, isFirst, isLast, isText),
      onPing: (payload: Uint8Array): void => this.#note({ type: "ping", hex: hexOf(payload) }),
      onPong: (payload: Uint8Array): void => this.#note({ type: "pong", hex: hexOf(payload) }),
      onClose: (code: number, reason: string): void => this.#note({ type: "close", code, reason }),
    };
    this.decoder = new WebSocketFrameDecoder(role, handler, { ...defaultWebSocketLimits, ...limits });
  }

  /**
   * Pushes a copy, because the decoder unmasks its input. Rethrows everything but a ProtocolError.
   */
  push(bytes: Uint8Array): this {
    try {
      this.decoder.push(Uint8Array.from(bytes));
    } catch (reason) {
      if (!(reason instanceof ProtocolError)) throw reason;
      this.#note({ type: "refused", closeCode: closeCodeOf(reason) });
    }
    return this;
  }

  #note(event: Event): void {
    this.events.push(event);
  }

  /** Checks the decoder's promises about parts in every test. */
  #onMessage(part: Uint8Array, isFirst: boolean, isLast: boolean, isText: boolean): void {
    if (part.length === 0 && !isLast) throw new Error("an empty part that is not the last");
    if (isFirst === this.#isInMessage) throw new Error("isFirst is wrong");
    if (!isFirst && isText !== this.#isTextMessage) throw new Error("isText changed within a message");
    this.parts.push({ part, isFirst, isLast });
    this.#message.push(Buffer.from(part));
    this.#isInMessage = !isLast;
    this.#isTextMessage = isText;
    if (!isLast) return;
    this.#note({ type: isText ? "text" : "binary", hex: hexOf(Buffer.concat(this.#message)) });
    this.#message = [];
  }
}

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** Bytes of a spaced hex string; `00*300` stands for 300 zero bytes. */
export function bytesOf(wire: string): Uint8Array {
  const words = wire.split(/\s+/).map((word) => {
    const [hex = "", times = "1"] = word.split("*");
    return Buffer.from(hex.repeat(Number(times)), "hex");
  });
  return Uint8Array.from(Buffer.concat(words));
}
