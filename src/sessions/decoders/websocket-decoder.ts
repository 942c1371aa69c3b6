import { ProtocolError } from "../../../protocols/protocol-error.ts";
import { applyMask, WebSocketFrameWalker } from "../../../protocols/websocket/index.ts";
import { poisonFreed } from "../../net/freed-memory.ts";
import type { SessionEnd } from "../carriers/session-end.ts";
import type { Farewells } from "../observers/end-observer.ts";
import type { SessionObservers } from "../observers/session-observers.ts";
import type { PassThroughDecoder } from "./pass-through-decoder.ts";

const CLOSE_NORMAL = 1000;
const SCRATCH_BYTES = 64 * 1024;

/** One for all sessions: a view of it is good for one call. */
let scratch: Uint8Array | undefined;

/** The frames of both sides of a WebSocket. What a side sends is read until it is no WebSocket; the other goes on. */
export abstract class WebSocketDecoder implements PassThroughDecoder {
  protected readonly observers: SessionObservers;
  readonly #client: WebSocketFrameWalker;
  readonly #node: WebSocketFrameWalker;
  #canReadClient = true;
  #canReadNode = true;
  #refusal: SessionEnd | undefined;

  constructor(observers: SessionObservers, ends: Farewells) {
    this.observers = observers;
    this.#client = new WebSocketFrameWalker("server", {
      onMessageStart: () => this.clientMessage(),
      onPayload: (chunk, start, end, maskKey, maskPhase) =>
        this.clientPayload(chunk, start, end, maskKey, maskPhase),
      onMessageEnd: () => {},
      onClose: (code) => ends.clientLeft(`the client closed with ${code}`),
    });
    this.#node = new WebSocketFrameWalker("client", {
      onMessageStart: () => this.nodeMessage(),
      onPayload: (chunk, start, end) => this.nodePayload(chunk, start, end),
      onMessageEnd: () => {},
      onClose: (code) => {
        if (code === CLOSE_NORMAL) observers.statusEnd();
        ends.nodeLeft(code === CLOSE_NORMAL, `the node closed the session with ${code}`);
      },
    });
  }

  /** A message of the client begins. */
  protected abstract clientMessage(): void;
  /** Masked as on the wire: see `seeUnmasked`. */
  protected abstract clientPayload(
    chunk: Uint8Array,
    start: number,
    end: number,
    maskKey: number,
    maskPhase: number,
  ): void;
  protected abstract nodeMessage(): void;
  protected abstract nodePayload(chunk: Uint8Array, start: number, end: number): void;

  fromClient(chunk: Uint8Array): SessionEnd | undefined {
    if (this.#canReadClient && this.#refusal === undefined) {
      try {
        this.#client.push(chunk);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        this.#canReadClient = false;
        this.refuse(this.observers.undecodable("client", error.message));
      }
    }
    return this.#refusal;
  }

  fromNode(chunk: Uint8Array, pass: (bytes: Uint8Array) => void): SessionEnd | undefined {
    if (this.#canReadNode) {
      try {
        this.#node.push(chunk);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        this.#canReadNode = false;
        this.refuse(this.observers.undecodable("node", error.message));
      }
    }
    if (this.#refusal === undefined) pass(chunk);
    return this.#refusal;
  }

  protected refuse(end: SessionEnd | undefined): void {
    this.#refusal ??= end;
  }
}

/** Calls `see` with copies of the bytes of `chunk` from `start` to `end`, unmasked, in order; the chunk stays as it is. */
export function seeUnmasked(
  chunk: Uint8Array,
  start: number,
  end: number,
  maskKey: number,
  maskPhase: number,
  see: (bytes: Uint8Array) => void,
): void {
  scratch ??= new Uint8Array(SCRATCH_BYTES);
  let phase = maskPhase;
  for (let at = start; at < end; at += SCRATCH_BYTES) {
    const view = scratch.subarray(0, Math.min(end - at, SCRATCH_BYTES));
    view.set(chunk.subarray(at, at + view.byteLength));
    phase = applyMask(view, maskKey, phase);
    see(view);
    poisonFreed(view);
  }
}
