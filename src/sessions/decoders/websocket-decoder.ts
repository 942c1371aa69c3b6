import { nextMaskKey } from "@sluice/client/internal/net/frame-memory";
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
  CLOSE,
  encodeClose,
  encodeControlFrame,
  OPCODE,
  WebSocketFrameWalker,
} from "@sluice/protocols/websocket";
import type { Farewells } from "../observers/end-observer.ts";
import type { Side } from "../observers/session-observer.ts";
import type { SessionObservers } from "../observers/session-observers.ts";
import type { ChannelReader } from "./channel-reader.ts";
import type { KeptReport, Pass, PassedEnd, PassThroughDecoder } from "./pass-through-decoder.ts";

/** Ends a message whose last frame will not come. */
const LAST_FRAGMENT: Uint8Array = Uint8Array.of(0x80, 0);

/**
 * Decodes both sides' WebSocket frames. If one side stops being valid WebSocket, only the other is
 * decoded further.
 */
export abstract class WebSocketDecoder implements PassThroughDecoder {
  protected readonly observers: SessionObservers;
  readonly #clientFrames: WebSocketFrameWalker;
  readonly #nodeFrames: WebSocketFrameWalker;
  protected canReadClient = true;
  #canReadNode = true;
  #refusal: SessionEnd | undefined;
  /** An observer refused the present part, perhaps after another refusal. */
  #isPartRefused = false;
  #passUp: Pass = () => {};
  #passDown: Pass = () => {};
  /** The newest unanswered PING of each side (RFC 6455 section 5.5.3). */
  #clientPing: Uint8Array | undefined;
  #nodePing: Uint8Array | undefined;
  /** Stopping: the node's bytes pass until the end of its present frame. Stopped: none pass. */
  #isStopping = false;
  #stopped: PassedEnd | undefined;
  #hasSaidMissing = false;
  #nodeChunk: Uint8Array = NOTHING;
  protected report: KeptReport | undefined;
  hasNodeLeft = false;

  constructor(observers: SessionObservers, ends: Farewells) {
    this.observers = observers;
    this.#clientFrames = new WebSocketFrameWalker("server", {
      onMessageStart: () => this.clientMessage(),
      onPayload: (chunk, start, end, maskKey, maskPhase) => {
        if (this.readsClient) this.client.maskedPayload(chunk, start, end, maskKey, maskPhase);
        else this.client.skip();
      },
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
    this.#nodeFrames = new WebSocketFrameWalker("client", {
      onMessageStart: () => {
        if (!this.#isNodeCut) this.node.startMessage();
      },
      onPayload: (chunk, start, end) => {
        if (this.#isNodeCut) return;
        this.#isPartRefused = false;
        if (this.readsNode) this.node.payload(chunk, start, end);
        else this.skipNode();
        if (!this.#isPartRefused) return;
        this.#isStopping = true;
        this.#stopped = this.#passBeforeFrame();
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
        if (this.#stopped) return;
        const answer = this.#takeAnswer();
        if (answer !== undefined) this.#passDown(answer);
        if (this.#isStopping) this.#stopHere();
      },
    });
  }

  /** A client's message that servers ignore is not passed on. See FrameWalkerHandler. */
  protected isUnwanted(firstByte: number, bytes: number, isWhole: boolean): boolean | undefined {
    if (bytes > 0 && !this.isWantedChannel(firstByte)) return true;
    // A message without payload changes nothing, and could meet a socket that the node has closed.
    if (bytes < 2) return isWhole ? true : undefined;
    return false;
  }

  /** Whether clients send on the channel with this first byte. */
  protected abstract isWantedChannel(firstByte: number): boolean;

  protected abstract readonly client: ChannelReader;
  protected abstract readonly node: ChannelReader;
  /** False: this side's payload is skipped unread. */
  protected abstract get readsClient(): boolean;
  protected abstract get readsNode(): boolean;

  /** Called when a message of the client begins. */
  protected clientMessage(): void {
    this.client.startMessage();
  }

  protected skipNode(): void {
    this.node.skip();
  }

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
    this.canReadClient = this.#walk("client", this.#clientFrames, this.canReadClient, chunk, pass);
    return this.#refusal;
  }

  fromNode(chunk: Uint8Array, pass: Pass): SessionEnd | undefined {
    this.#passDown = pass;
    this.#nodeChunk = chunk;
    this.#canReadNode = this.#walk("node", this.#nodeFrames, this.#canReadNode, chunk, pass);
    this.#nodeChunk = NOTHING;
    return this.#refusal;
  }

  keepReport(report: KeptReport): void {
    this.report = report;
  }

  /** Call in the first frame of the node's report. `hasMore`: only if more payload follows. */
  protected reportBegins(hasMore = false): void {
    if (hasMore && !this.#nodeFrames.hasMorePayload) return;
    if (this.report?.hasBegun === false && !this.#isNodeCut) this.report.begin(this.#passBeforeFrame());
  }

  answerClient(): Uint8Array | undefined {
    if (this.#clientPing === undefined || !this.#canReadNode) return undefined;
    if (this.#nodeFrames.isBetweenFrames) return this.#takeAnswer();
    this.#nodeFrames.awaitBoundary();
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
    if (!this.#canReadNode || !this.#nodeFrames.isBetweenFrames) return undefined;
    return Buffer.concat([OPCODE.PONG, OPCODE.PING].map((opcode) => encodeControlFrame(opcode, NOTHING)));
  }

  beatNode(): Uint8Array | undefined {
    return this.#isClientBetweenFrames ? encodeControlFrame(OPCODE.PING, NOTHING, nextMaskKey()) : undefined;
  }

  stop(): boolean {
    if (!this.#canReadNode || this.#stopped || this.report?.kept) return true;
    this.#isStopping = true;
    if (this.#nodeFrames.isBetweenFrames) this.#stopHere();
    else this.#nodeFrames.awaitBoundary();
    return this.#stopped !== undefined;
  }

  failureFrame(message: string, end: SessionEnd): Uint8Array | undefined {
    const kept = this.report?.kept;
    const { isInFrame, isInMessage } = kept ?? this.#passedEnd;
    if ((this.hasNodeLeft && !kept) || isInFrame) return undefined;
    const failure = this.#hasSaidMissing && !kept ? undefined : this.failureMessage(statusOf(end, message));
    return Buffer.concat([isInMessage ? LAST_FRAGMENT : NOTHING, failure ?? NOTHING, this.closeFor(end)]);
  }

  get #passedEnd(): PassedEnd {
    const isInFrame = !this.#canReadNode || !this.#nodeFrames.isBetweenFrames;
    return this.#stopped ?? { isInFrame, isInMessage: this.#nodeFrames.isInMessage };
  }

  /** The client gets nothing that the node sends from here on, so none of it counts. */
  get #isNodeCut(): boolean {
    return this.#stopped !== undefined || (this.#refusal !== undefined && !this.#isStopping);
  }

  /** Passes the chunk's bytes before the node's current frame; the frame itself waits. */
  #passBeforeFrame(): PassedEnd {
    const isInFrame = !this.#nodeFrames.passBeforeFrame(this.#nodeChunk);
    return { isInFrame, isInMessage: this.#nodeFrames.wasInMessage };
  }

  #stopHere(): void {
    this.#stopped = { isInFrame: false, isInMessage: this.#nodeFrames.isInMessage };
  }

  /** Sends a missing Status before Close, since a client takes an end without one for exit code 0. */
  #beforeClose(): void {
    if (this.#isNodeCut || this.#nodeFrames.isInMessage) return;
    this.reportBegins();
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
    return this.canReadClient && this.#clientFrames.isBetweenFrames;
  }

  /** Between two messages of the client, where the gateway may insert one. */
  protected get isClientBetweenMessages(): boolean {
    return this.#isClientBetweenFrames && !this.#clientFrames.isInMessage;
  }

  /** Between two messages of the node; the client has all of the first. */
  protected get isNodeBetweenMessages(): boolean {
    if (!this.#canReadNode || this.hasNodeLeft || this.#isNodeCut || this.#isStopping) return false;
    return this.#nodeFrames.isBetweenFrames && !this.#nodeFrames.isInMessage;
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
