import { ProtocolError } from "../../../protocols/protocol-error.ts";
import {
  Base64Decoder,
  CHANNEL,
  channelByte,
  type RemoteCommandVersion,
  specOf,
} from "../../../protocols/remotecommand/index.ts";
import { FrameWalker } from "../../../protocols/spdy/index.ts";
import { type FrameWalkerHandler, WebSocketFrameWalker } from "../../../protocols/websocket/index.ts";
import { CommandResult } from "../carriers/command-result.ts";
import { endOf, type SessionEnd } from "../carriers/session-end.ts";
import { EndObserver } from "./end-observer.ts";

const CLOSE_NORMAL = 1000;

/** What the observer must know of a WebSocket session: the version of an exec or attach, or that a port-forward is a tunnel or not. */
export type ObservedSession = RemoteCommandVersion | "tunnel" | "legacy-forward";

/**
 * A WebSocket session that passes through: Close frames of both sides, the status channel of an exec or attach, and GOAWAY in a tunnel.
 * What it does not understand it stops reading; the session then ends as its connections do.
 */
export class WebSocketEndObserver extends EndObserver {
  readonly #client: WebSocketFrameWalker;
  readonly #node: WebSocketFrameWalker;
  readonly #command: StatusReader | undefined;
  #nodeClose: number | undefined;
  #canReadClient = true;
  #canReadNode = true;

  constructor(session: ObservedSession) {
    super();
    const isCommand = session !== "tunnel" && session !== "legacy-forward";
    this.#command = isCommand ? new StatusReader(session) : undefined;
    const goAway = new FrameWalker(() => this.clientLeft("the client ended the session"));
    this.#client = new WebSocketFrameWalker("server", {
      ...UNREAD,
      ...(session === "tunnel" && {
        onPayload: (chunk: Uint8Array, start: number, end: number, maskKey: number, maskPhase: number) =>
          goAway.push(chunk, start, end, maskKey, maskPhase),
      }),
      onClose: (code) => {
        if (this.#nodeClose === undefined) this.clientLeft(`the client closed with ${code}`);
      },
    });
    const status = this.#command;
    this.#node = new WebSocketFrameWalker("client", {
      onMessageStart: () => status?.startMessage(),
      onPayload: (chunk, start, end) => status?.payload(chunk, start, end),
      onMessageEnd: () => status?.endMessage(),
      onClose: (code) => {
        this.#nodeClose ??= code;
      },
    });
  }

  /** Close 1000 is the end of everything but a v4 or v5 command, which ends with a status. */
  get hasResult(): boolean {
    if (this.#command?.hasStatus === true) return true;
    return this.#nodeClose === CLOSE_NORMAL && this.#command?.needsStatus !== true;
  }

  fromDownstream(chunk: Uint8Array): void {
    if (this.#canReadClient) this.#canReadClient = walk(this.#client, chunk);
  }

  fromUpstream(chunk: Uint8Array): void {
    if (this.#canReadNode) this.#canReadNode = walk(this.#node, chunk);
  }

  protected judge(how: string): SessionEnd {
    const code = this.#nodeClose;
    const closed = code === undefined ? how : `the node closed the session with ${code}`;
    if (this.#command !== undefined) {
      return this.#command.conclude(`${closed} without a status`, code === CLOSE_NORMAL);
    }
    return endOf(code === CLOSE_NORMAL ? "completed" : "upstream-lost", closed);
  }
}

const UNREAD: Omit<FrameWalkerHandler, "onClose"> = {
  onMessageStart: () => {},
  onPayload: () => {},
  onMessageEnd: () => {},
};

/** Collects what a node says on the status channel; payload of other channels is passed over by its first byte. */
class StatusReader {
  readonly needsStatus: boolean;
  readonly #result: CommandResult;
  readonly #statusByte: number;
  readonly #isBase64: boolean;
  #base64: Base64Decoder | undefined;
  #isFirstByteDue = false;
  #isStatus = false;
  hasStatus = false;

  constructor(version: RemoteCommandVersion) {
    const spec = specOf(version);
    this.#result = new CommandResult(version);
    this.needsStatus = spec.hasStatusJson;
    this.#isBase64 = spec.isBase64;
    this.#statusByte = channelByte(CHANNEL.ERROR, spec);
  }

  startMessage(): void {
    this.#isFirstByteDue = true;
    this.#isStatus = false;
  }

  payload(chunk: Uint8Array, start: number, end: number): void {
    let at = start;
    if (this.#isFirstByteDue) {
      this.#isFirstByteDue = false;
      this.#isStatus = chunk[at] === this.#statusByte;
      this.#base64 = this.#isStatus && this.#isBase64 ? new Base64Decoder() : undefined;
      at += 1;
    }
    if (!this.#isStatus || at === end) return;
    const part = chunk.subarray(at, end);
    this.#result.receive(this.#base64 === undefined ? part : this.#base64.push(part, false));
  }

  endMessage(): void {
    if (this.#isStatus && !this.hasStatus) this.hasStatus = this.#result.isComplete;
  }

  conclude(unsaid: string, isOrderly: boolean): SessionEnd {
    this.#result.end(isOrderly);
    return this.#result.conclude(unsaid).end;
  }
}

/** False once what comes is no WebSocket, or nothing that can be read. */
function walk(walker: WebSocketFrameWalker, chunk: Uint8Array): boolean {
  try {
    walker.push(chunk);
    return true;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return false;
  }
}
