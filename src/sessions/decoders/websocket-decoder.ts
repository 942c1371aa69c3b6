import { poisonFreed } from "@sluice/client/internal/net/freed-memory";
import { nextMaskKey } from "@sluice/client/internal/net/mask-keys";
import {
  closeCodeFor,
  reasonOf,
  type SessionEnd,
  statusOf,
} from "@sluice/client/internal/sessions/session-end";
import { ProtocolError } from "@sluice/protocols";
import { NOTHING } from "@sluice/protocols/bytes";
import type { CommandStatus } from "@sluice/protocols/remotecommand";
import {
  applyMask,
  CLOSE,
  encodeClose,
  encodeControlFrame,
  OPCODE,
  WebSocketFrameWalker,
} from "@sluice/protocols/websocket";
import type { Farewells } from "../observers/end-observer.ts";
import type { Side } from "../observers/session-observer.ts";
import type { SessionObservers } from "../observers/session-observers.ts";
import type { Pass, PassThroughDecoder } from "./pass-through-decoder.ts";

/** Ends a message whose last frame will not come. */
const LAST_FRAGMENT: Uint8Array = Uint8Array.of(0x80, 0);
const SCRATCH_BYTES = 64 * 1024;

/** Shared by all sessions. A view of it is valid for one call. */
let scratch: Uint8Array | undefined;

/**
 * Decodes both sides' WebSocket frames. If one side stops being valid WebSocket, only the other is
 * decoded further.
 */
export abstract class WebSocketDecoder implements PassThroughDecoder {
  protected readonly observers: SessionObservers;
  readonly #client: WebSocketFrameWalker;
  readonly #node: WebSocketFrameWalker;
  #canReadClient = true;
  #canReadNode = true;
  #refusal: SessionEnd | undefined;
  /** An observer refused the present part, be it after another refusal. */
  #isPartRefused = false;
  #passUp: Pass = () => {};
  #passDown: Pass = () => {};
  /** The newest unanswered PING of each side (RFC 6455 section 5.5.3). */
  #clientPing: Uint8Array | undefined;
  #nodePing: Uint8Array | undefined;
  /** Stopping: the node's bytes pass until the end of its present frame. Stopped: none pass. */
  #isStopping = false;
  #isStopped = false;
  #isCutInMessage = false;
  #isCutInFrame = false;
  #hasSaidMissing = false;
  hasNodeLeft = false;

  constructor(observers: SessionObservers, ends: Farewells) {
    this.observers = observers;
    this.#client = new WebSocketFrameWalker("server", {
      onMessageStart: () => this.clientMessage(),
      onPayload: (chunk, start, end, maskKey, maskPhase) =>
        this.clientPayload(chunk, start, end, maskKey, maskPhase),
      onMessageEnd: () => {},
      onCloseStart: () => {},
      onClose: (code) => ends.clientLeft(`the client closed with ${code}`),
      onPing: (payload) => {
        this.#clientPing = payload;
      },
      onPass: (bytes) => {
        if (this.#refusal === undefined) this.#passUp(bytes);
      },
      isUnwanted: (firstByte, bytes, isWhole) => this.isUnwanted(firstByte, bytes, isWhole),
      onBoundary: () => {},
    });
    this.#node = new WebSocketFrameWalker("client", {
      onMessageStart: () => {
        if (!this.#isNodeCut) this.nodeMessage();
      },
      onPayload: (chunk, start, end) => {
        if (this.#isNodeCut) return;
        this.#isPartRefused = false;
        this.nodePayload(chunk, start, end);
        if (this.#isPartRefused) this.#cutBefore(chunk);
      },
      onMessageEnd: () => {},
      onCloseStart: () => this.#beforeClose(),
      onClose: (code) => {
        if (this.#isNodeCut) return;
        this.hasNodeLeft = true;
        if (code === CLOSE.NORMAL) observers.statusEnd();
        ends.nodeLeft(code === CLOSE.NORMAL, `the node closed the session with ${code}`);
      },
      onPing: (payload) => {
        this.#nodePing = payload;
      },
      onPass: (bytes) => {
        if (!this.#isNodeCut) this.#passDown(bytes);
      },
      onBoundary: () => {
        if (this.#isStopped) return;
        const answer = this.#takeAnswer();
        if (answer !== undefined) this.#passDown(answer);
        if (this.#isStopping) this.#stopHere();
      },
    });
  }

  /** A message of the client's that servers ignore: it is not passed on. See FrameWalkerHandler. */
  protected isUnwanted(firstByte: number, bytes: number, isWhole: boolean): boolean | undefined {
    if (bytes > 0 && !this.isWantedChannel(firstByte)) return true;
    // Bytes without payload would only meet a socket that the node may have closed.
    if (bytes < 2) return isWhole ? true : undefined;
    return false;
  }

  /** Whether clients send on the channel with this first byte. */
  protected abstract isWantedChannel(firstByte: number): boolean;

  /** Called when a message of the client begins. */
  protected abstract clientMessage(): void;
  /** The bytes are masked, as on the wire: see `seeUnmasked`. */
  protected abstract clientPayload(
    chunk: Uint8Array,
    start: number,
    end: number,
    maskKey: number,
    maskPhase: number,
  ): void;
  protected abstract nodeMessage(): void;
  protected abstract nodePayload(chunk: Uint8Array, start: number, end: number): void;

  /**
   * The message that reports a failure before Close; undefined if the protocol has none, or the node has
   * begun its own.
   */
  protected failureMessage(_status: CommandStatus): Uint8Array | undefined {
    return undefined;
  }

  /** If the protocol has no failure message, the Close frame gives the reason. */
  protected closeFor(end: SessionEnd): Uint8Array {
    return encodeClose(closeCodeFor(end), reasonOf(end));
  }

  fromClient(chunk: Uint8Array, pass: Pass): SessionEnd | undefined {
    this.#passUp = pass;
    this.#canReadClient = this.#walk("client", this.#client, this.#canReadClient, chunk, pass);
    return this.#refusal;
  }

  fromNode(chunk: Uint8Array, pass: Pass): SessionEnd | undefined {
    this.#passDown = pass;
    this.#canReadNode = this.#walk("node", this.#node, this.#canReadNode, chunk, pass);
    return this.#refusal;
  }

  answerClient(): Uint8Array | undefined {
    if (this.#clientPing === undefined || !this.#canReadNode) return undefined;
    if (this.#node.isBetweenFrames) return this.#takeAnswer();
    this.#node.awaitBoundary();
    return undefined;
  }

  answerNode(): Uint8Array | undefined {
    const payload = this.#nodePing;
    if (payload === undefined || !this.#isClientBetweenFrames) return undefined;
    this.#nodePing = undefined;
    return encodeControlFrame(OPCODE.PONG, payload, nextMaskKey());
  }

  /**
   * Sends PONG as well as PING: only PONGs extend client-go's deadline, and its own PINGs may wait
   * behind input.
   */
  beatClient(): Uint8Array | undefined {
    if (!this.#canReadNode || !this.#node.isBetweenFrames) return undefined;
    const beats = [OPCODE.PONG, OPCODE.PING].map((opcode) => encodeControlFrame(opcode, NOTHING));
    return Buffer.concat(beats);
  }

  beatNode(): Uint8Array | undefined {
    return this.#isClientBetweenFrames ? encodeControlFrame(OPCODE.PING, NOTHING, nextMaskKey()) : undefined;
  }

  stop(): boolean {
    if (!this.#canReadNode || this.#isStopped) return true;
    this.#isStopping = true;
    if (this.#node.isBetweenFrames) this.#stopHere();
    else this.#node.awaitBoundary();
    return this.#isStopped;
  }

  failureFrame(message: string, end: SessionEnd): Uint8Array | undefined {
    const isBetweenFrames = this.#isStopped
      ? !this.#isCutInFrame
      : this.#canReadNode && this.#node.isBetweenFrames;
    if (this.hasNodeLeft || !isBetweenFrames) return undefined;
    const isCut = this.#isStopped ? this.#isCutInMessage : this.#node.isInMessage;
    const failure = this.#hasSaidMissing ? undefined : this.failureMessage(statusOf(end, message));
    return Buffer.concat([isCut ? LAST_FRAGMENT : NOTHING, failure ?? NOTHING, this.closeFor(end)]);
  }

  /** The client gets none of what the node sends from here on, so nothing of it counts. */
  get #isNodeCut(): boolean {
    return this.#isStopped || (this.#refusal !== undefined && !this.#isStopping);
  }

  /** The node's present frame is refused: what came before it in the chunk still passes. */
  #cutBefore(chunk: Uint8Array): void {
    this.#isStopping = true;
    this.#isCutInFrame = !this.#node.passBeforeFrame(chunk);
    this.#isCutInMessage = this.#node.wasInMessage;
    this.#isStopped = true;
  }

  #stopHere(): void {
    this.#isStopped = true;
    this.#isCutInMessage = this.#node.isInMessage;
  }

  /** Sends a missing Status before Close, since a client takes an end without one for exit code 0. */
  #beforeClose(): void {
    if (this.#isNodeCut || this.#node.isInMessage) return;
    const missing = this.missingStatus();
    if (missing === undefined) return;
    this.#hasSaidMissing = true;
    this.#passDown(missing);
  }

  /** The Status that should precede the node's Close frame and did not come. */
  protected missingStatus(): Uint8Array | undefined {
    return undefined;
  }

  get #isClientBetweenFrames(): boolean {
    return this.#canReadClient && this.#client.isBetweenFrames;
  }

  #takeAnswer(): Uint8Array | undefined {
    const payload = this.#clientPing;
    this.#clientPing = undefined;
    return payload === undefined ? undefined : encodeControlFrame(OPCODE.PONG, payload);
  }

  /**
   * Returns whether this side is still decodable. Undecodable bytes pass unchanged unless an observer
   * refuses them.
   */
  #walk(side: Side, walker: WebSocketFrameWalker, canRead: boolean, chunk: Uint8Array, pass: Pass): boolean {
    if (this.#refusal !== undefined && !this.#isStopping) return canRead;
    if (!canRead) {
      pass(chunk);
      return false;
    }
    try {
      walker.push(chunk);
      return true;
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.refuse(this.observers.undecodable(side, error.message));
      if (this.#refusal === undefined) {
        const held = walker.takeHeld();
        if (held.byteLength > 0) pass(held);
        pass(chunk.subarray(walker.passedBytes));
      }
      return false;
    }
  }

  protected refuse(end: SessionEnd | undefined): void {
    if (end !== undefined) this.#isPartRefused = true;
    this.#refusal ??= end;
  }
}

/**
 * Calls `see` with unmasked copies of the bytes in `chunk` from `start` to `end`, in order. Does not
 * change the chunk.
 */
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
