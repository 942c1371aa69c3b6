import { nextMaskKey } from "@sluice/client/internal/net/frame-memory";
import type { SessionEnd } from "@sluice/client/internal/sessions/session-end";
import {
  CHANNEL,
  type CommandStatus,
  channelByte,
  encodeBase64,
  encodeStatus,
  internalErrorStatus,
  type RemoteCommandSpec,
  type RemoteCommandVersion,
  specOf,
  statusPayload,
} from "@sluice/protocols/remotecommand";
import {
  applyMask,
  CLOSE,
  encodeClose,
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  writeFrameHeader,
  writeMaskedFrameHeader,
} from "@sluice/protocols/websocket";
import type { CommandEndObserver } from "../observers/end-observer.ts";
import { RESIZE, STDERR, STDIN, STDOUT } from "../observers/session-observer.ts";
import type { SessionObservers } from "../observers/session-observers.ts";
import { ChannelReader } from "./channel-reader.ts";
import { WebSocketDecoder } from "./websocket-decoder.ts";

/** Decodes an exec or attach over WebSocket, in any version. */
export class WebSocketCommandDecoder extends WebSocketDecoder {
  readonly #version: RemoteCommandVersion;
  readonly #ends: CommandEndObserver;
  protected readonly client: ChannelReader;
  protected readonly node: ChannelReader;
  /** Bytes of the client's present message on channel CLOSE. */
  #closeBytes = 0;
  /** The client's present message is on channel CLOSE. */
  #isClose = false;
  #hasStdinEnded = false;

  constructor(version: RemoteCommandVersion, observers: SessionObservers, ends: CommandEndObserver) {
    super(observers, ends);
    this.#version = version;
    this.#ends = ends;
    const spec = specOf(version);
    this.client = new ChannelReader(
      spec,
      (channel) => observers.showsClient || channel === CHANNEL.CLOSE,
      (channel, part) => {
        if (channel === CHANNEL.STDIN) this.refuse(observers.data(STDIN, "client", part));
        else if (channel === CHANNEL.RESIZE) this.refuse(observers.data(RESIZE, "client", part));
        else if (channel === CHANNEL.CLOSE && spec.hasClose) this.#seeClose(part);
      },
    );
    this.node = new ChannelReader(
      spec,
      (channel) => {
        // The kubelet opens some sessions with an empty message here, which reports nothing.
        if (channel === CHANNEL.ERROR) this.reportBegins(true);
        return channel === CHANNEL.ERROR || observers.showsNode;
      },
      (channel, part) => {
        if (channel === CHANNEL.ERROR) this.#status(part);
        else if (channel === CHANNEL.STDOUT) this.refuse(observers.data(STDOUT, "node", part));
        else if (channel === CHANNEL.STDERR) this.refuse(observers.data(STDERR, "node", part));
      },
    );
  }

  #status(part: Uint8Array): void {
    this.reportBegins();
    this.observers.status(part);
  }

  /**
   * Reports the end of stdin once. Only a message's first byte counts, since a malformed message may
   * come in several parts.
   */
  #seeClose(part: Uint8Array): void {
    const isFirstByte = this.#closeBytes === 0 && part.byteLength > 0;
    this.#closeBytes += part.byteLength;
    if (!isFirstByte || part[0] !== CHANNEL.STDIN || this.#hasStdinEnded) return;
    this.#hasStdinEnded = true;
    this.observers.streamEnd(STDIN, "client");
  }

  get readsInput(): boolean {
    return this.canReadClient && !this.#hasStdinEnded && !this.#ends.hasClientLeft;
  }

  input(bytes: Uint8Array, by: string): Uint8Array | SessionEnd | undefined {
    if (!this.isClientBetweenMessages) return undefined;
    const refusal = this.observers.data({ ...STDIN, by }, "client", bytes);
    return refusal ?? encodeInput(specOf(this.#version), bytes, nextMaskKey());
  }

  outputFrame(text: Uint8Array): Uint8Array | undefined {
    if (!this.isNodeBetweenMessages || this.#ends.hasStatus) return undefined;
    return encodeChannelMessage(specOf(this.#version), CHANNEL.STDOUT, text);
  }

  protected override failureMessage(given: CommandStatus): Uint8Array | undefined {
    if (this.#ends.hasStatus && this.report?.kept === undefined) return undefined;
    const status = statusPayload(this.#version, encodeStatus(given));
    return encodeChannelMessage(specOf(this.#version), CHANNEL.ERROR, status);
  }

  protected override closeFor(): Uint8Array {
    return encodeClose(CLOSE.NORMAL, "");
  }

  protected override missingStatus(): Uint8Array | undefined {
    const { hasStatus, hasClientLeft } = this.#ends;
    return specOf(this.#version).hasStatusJson && !hasStatus && !hasClientLeft
      ? this.failureMessage(internalErrorStatus("the node ended the session without a status"))
      : undefined;
  }

  protected override isWantedChannel(firstByte: number): boolean {
    const { isBase64, hasClose } = specOf(this.#version);
    const isOfClient = [CHANNEL.STDIN, CHANNEL.RESIZE].some(
      (channel) => channelByte(channel, { isBase64 }) === firstByte,
    );
    return isOfClient || (hasClose && firstByte === CHANNEL.CLOSE && this.#beginsClose());
  }

  /** Read even without observers, because a joiner may not type after it. */
  #beginsClose(): true {
    this.#isClose = true;
    return true;
  }

  protected override clientMessage(): void {
    super.clientMessage();
    this.#closeBytes = 0;
    this.#isClose = false;
  }

  protected get readsClient(): boolean {
    const { showsClient, showsEnds } = this.observers;
    return showsClient || showsEnds || this.#isClose;
  }

  /** The Status is read even without observers. */
  protected get readsNode(): boolean {
    return true;
  }
}

/** Encodes a client's message on stdin as a masked frame. */
function encodeInput({ isBase64 }: Pick<RemoteCommandSpec, "isBase64">, bytes: Uint8Array, maskKey: number) {
  const text = isBase64 ? encodeBase64(bytes) : bytes;
  const body = Buffer.concat([Buffer.of(channelByte(CHANNEL.STDIN, { isBase64 })), text]);
  const header = new Uint8Array(MAX_FRAME_HEADER_BYTES);
  const opcode = isBase64 ? OPCODE.TEXT : OPCODE.BINARY;
  const headerBytes = writeMaskedFrameHeader(header, 0, opcode, body.byteLength, true, maskKey);
  applyMask(body, maskKey, 0);
  return Buffer.concat([header.subarray(0, headerBytes), body]);
}

/** Encodes a server's message for a channel as a frame, without a WebSocketConnection. */
function encodeChannelMessage(
  framing: Pick<RemoteCommandSpec, "isBase64">,
  channel: number,
  payload: Uint8Array,
): Uint8Array {
  const body = framing.isBase64 ? encodeBase64(payload) : payload;
  const header = new Uint8Array(MAX_FRAME_HEADER_BYTES);
  const opcode = framing.isBase64 ? OPCODE.TEXT : OPCODE.BINARY;
  const headerBytes = writeFrameHeader(header, 0, opcode, 1 + body.byteLength, true);
  return Buffer.concat([header.subarray(0, headerBytes), Buffer.of(channelByte(channel, framing)), body]);
}
