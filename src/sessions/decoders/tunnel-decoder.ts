import type { SpdyLimits } from "../../../protocols/spdy/index.ts";
import type { Farewells } from "../observers/end-observer.ts";
import type { SessionObservers } from "../observers/session-observers.ts";
import { ForwardDecoder } from "./forward-decoder.ts";
import { seeUnmasked, WebSocketDecoder } from "./websocket-decoder.ts";

/** Decodes a port-forward over SPDY inside WebSocket messages. The node's farewell is its Close frame. */
export class TunnelDecoder extends WebSocketDecoder {
  readonly #inner: ForwardDecoder;
  readonly #seeClient = (bytes: Uint8Array): void => this.refuse(this.#inner.decodeClient(bytes));

  constructor(limits: SpdyLimits, observers: SessionObservers, ends: Farewells) {
    super(observers, ends);
    this.#inner = new ForwardDecoder(limits, observers, {
      clientLeft: (how) => ends.clientLeft(how),
      nodeLeft: () => {},
    });
  }

  protected clientMessage(): void {}

  protected clientPayload(
    chunk: Uint8Array,
    start: number,
    end: number,
    maskKey: number,
    maskPhase: number,
  ): void {
    this.#inner.walkClient(chunk, start, end, maskKey, maskPhase);
    if (this.#inner.decodesClient) seeUnmasked(chunk, start, end, maskKey, maskPhase, this.#seeClient);
  }

  protected nodeMessage(): void {}

  protected nodePayload(chunk: Uint8Array, start: number, end: number): void {
    if (this.observers.needsNodeStreams) this.refuse(this.#inner.readNode(chunk.subarray(start, end)));
  }
}
