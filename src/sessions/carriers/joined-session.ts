import { setTimeout as delay } from "node:timers/promises";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { reportFault } from "@sluice/client/internal/observability/faults";
import { endOf, type SessionEnd, statusOf } from "@sluice/client/internal/sessions/session-end";
import {
  clientEnd,
  WebSocketConnection,
  type WebSocketEnd,
  webSocketOptions,
} from "@sluice/client/internal/sessions/websocket-connection";
import { NOTHING } from "@sluice/protocols/bytes";
import {
  CHANNEL,
  ChannelDemux,
  type CommandStatus,
  encodeStatus,
  type RemoteCommandVersion,
  specOf,
} from "@sluice/protocols/remotecommand";
import { CLOSE, type WebSocketLimits } from "@sluice/protocols/websocket";
import { type Feed, feed } from "../../net/feed.ts";
import type { SessionLifecycle } from "../lifecycle.ts";
import type { StreamingSession } from "../session.ts";
import {
  JOIN_ENDED,
  JOINER_BEAT_MS,
  type JoinAnswer,
  type Joinable,
  MAX_INPUT_BATCH,
} from "../session-joins.ts";
import { LEFT, type OutputAnswer, type OutputPage } from "../session-outputs.ts";
import { terminalWarning } from "./terminal-warning.ts";

/** A joiner's input that waits for the session. Past it the joiner's connection is not read. */
const MAX_JOINED_INPUT = 64 * 1024;
/** How long a session that takes no more input may take to end. Past it the join ends with 409. */
const MAX_DEAF_MS = 2_000;
/** How long until refused input is offered again, in milliseconds. */
const AGAIN_MS = 20;
const UNANSWERED_AGAIN_MS = 500;

interface JoinOptions {
  readonly version: RemoteCommandVersion;
  readonly webSocketLimits: WebSocketLimits;
}

/**
 * A join over WebSocket. Channel 1 carries the session's output, channel 0 input for it, in
 * batches, one in flight; channel 3 ends with a Status. Only the session's owner sets its size.
 */
export class JoinedSession implements StreamingSession {
  readonly #session: Joinable;
  readonly #life: SessionLifecycle;
  readonly #webSocket: WebSocketConnection;
  readonly #feed: Feed;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #isTyping = false;
  /** The session takes no more input. */
  #isDeaf = false;
  #typedMs: number;
  #wake: () => void = () => {};

  constructor(
    { socket, head }: UpgradedConnection,
    session: Joinable,
    { version, webSocketLimits }: JoinOptions,
    life: SessionLifecycle,
  ) {
    this.#session = session;
    this.#life = life;
    this.#typedMs = life.clock.now();
    const demux = new ChannelDemux(specOf(version), {
      onChannelData: (channel, part) => {
        if (channel === CHANNEL.STDIN) this.#typed(part);
      },
      // Only the session's owner can end its stdin.
      onChannelClose: () => {},
    });
    this.#webSocket = new WebSocketConnection(
      socket,
      {
        onMessage: (part, isFirst, isLast) => demux.push(part, isFirst, isLast),
        onEnd: (end) => this.#left(end),
      },
      webSocketOptions("server", webSocketLimits, life),
    );
    this.#feed = feed(socket, socket, (chunk) => this.#webSocket.receive(chunk), life.pace("client"));
    for (const event of ["drain", "close"]) socket.on(event, () => this.#wake());
    // Clients wait for this message, as at the start of a command.
    this.#webSocket.sendMessage(CHANNEL.STDOUT, NOTHING);
    if (head.byteLength > 0) this.#webSocket.receive(head);
    this.#run(this.#show());
  }

  tick(nowMs: number): void {
    this.#webSocket.tick(nowMs);
    if (!this.#isTyping && !this.#isDeaf && nowMs - this.#typedMs >= JOINER_BEAT_MS) this.#run(this.#beat());
  }

  /**
   * Ends the join from outside: the joiner lost its right, or this process stops. The session
   * continues.
   */
  end(end: SessionEnd): void {
    this.#fail(end, statusOf(end));
  }

  #typed(part: Uint8Array): void {
    if (part.byteLength === 0 || this.#isDeaf) return;
    this.#pending.push(Buffer.from(part));
    this.#pendingBytes += part.byteLength;
    if (this.#pendingBytes >= MAX_JOINED_INPUT) this.#feed.hold();
    if (!this.#isTyping) this.#run(this.#typeAll());
  }

  async #typeAll(): Promise<void> {
    this.#isTyping = true;
    try {
      while (this.#pendingBytes > 0 && !this.#isDeaf) {
        const waiting = Buffer.concat(this.#pending, this.#pendingBytes);
        this.#pending = [waiting];
        const batch = waiting.subarray(0, MAX_INPUT_BATCH);
        const answer = await this.#session.type(batch);
        this.#typedMs = this.#life.clock.now();
        if (answer === "later") {
          // The joiner has left: the rest of its input does not wait for the node.
          if (this.#life.isOver) return;
          await delay(AGAIN_MS);
        } else if (answer === "taken") this.#sent(batch.byteLength);
        else await this.#deaf(answer);
      }
    } finally {
      this.#isTyping = false;
    }
  }

  /** Removes the input that was typed; more may have come behind it meanwhile. */
  #sent(bytes: number): void {
    const [waiting, ...more] = this.#pending;
    const rest = waiting?.subarray(bytes);
    this.#pending = rest === undefined || rest.byteLength === 0 ? more : [rest, ...more];
    this.#pendingBytes -= bytes;
    this.#life.upstreamBytes += bytes;
    if (this.#pendingBytes < MAX_JOINED_INPUT) this.#feed.release();
  }

  async #beat(): Promise<void> {
    this.#isTyping = true;
    this.#typedMs = this.#life.clock.now();
    try {
      await this.#session.type(NOTHING);
    } finally {
      this.#isTyping = false;
    }
    if (this.#pendingBytes > 0) await this.#typeAll();
  }

  /** The session takes no more input. Usually it is ending, which `#show` will see. */
  async #deaf(answer: JoinAnswer): Promise<void> {
    this.#isDeaf = true;
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#feed.release();
    if (answer !== "unreachable") await delay(MAX_DEAF_MS);
    if (this.#life.isOver) return;
    if (answer === "unreachable") this.#unreachable("input may be lost");
    else {
      const message = "the session's command reads no more input";
      this.#fail(endOf("upstream-failed", message), { code: 409, reason: "Conflict", message });
    }
  }

  async #show(): Promise<void> {
    let page: OutputAnswer = this.#session.first;
    let after = page.from;
    let silentSinceMs: number | undefined;
    while (!this.#life.isOver) {
      if (typeof page === "string") {
        silentSinceMs ??= performance.now();
        if (page !== "unreachable") return await this.#over();
        if (performance.now() - silentSinceMs > this.#session.unansweredMs)
          return this.#unreachable("it is lost");
        await delay(UNANSWERED_AGAIN_MS);
      } else {
        silentSinceMs = undefined;
        this.#write(page, after);
        if (page.isOver) return await this.#over();
        after = page.next;
        await this.#drained();
      }
      page = await this.#session.read(after);
    }
    void this.#session.read(LEFT);
  }

  #write({ from, events }: OutputPage, after: number): void {
    const { socket } = this.#webSocket;
    socket.cork();
    if (from > after && this.#session.hasTerminal)
      this.#webSocket.sendMessage(CHANNEL.STDOUT, terminalWarning("output is missing here"));
    for (const [, code, text] of events) {
      if (code !== "o") continue;
      const bytes = Buffer.from(text);
      this.#life.downstreamBytes += bytes.byteLength;
      this.#webSocket.sendMessage(CHANNEL.STDOUT, bytes);
    }
    socket.uncork();
  }

  async #drained(): Promise<void> {
    const { socket } = this.#webSocket;
    while (socket.writableNeedDrain && !this.#life.isOver)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }

  /** The session is over: sends the joiner the Status of its command. */
  async #over(): Promise<void> {
    const answer = await this.#session.type(NOTHING);
    if (this.#life.isOver) return;
    if (typeof answer === "object") this.#conclude(answer.over, endOf("completed", "the session is over"));
    else this.#unreachable("it is gone");
  }

  #unreachable(what: string): void {
    const message = `the process of session ${this.#session.name} does not answer: ${what}`;
    this.#fail(endOf("upstream-lost", message), { code: 503, reason: "ServiceUnavailable", message });
  }

  /** Ends the join; the session continues. */
  #fail(end: SessionEnd, status: Omit<CommandStatus, "status">): void {
    if (this.#life.isOver) return;
    const causes = [{ reason: JOIN_ENDED, message: end.cause }];
    this.#conclude({ metadata: {}, ...status, status: "Failure", details: { causes } }, end);
    this.#run(this.#leave());
  }

  #conclude(status: CommandStatus, end: SessionEnd): void {
    const { socket } = this.#webSocket;
    this.#life.end(end, socket, () => this.#webSocket.hasSentClose);
    socket.cork();
    this.#webSocket.sendMessage(CHANNEL.ERROR, encodeStatus(status));
    this.#webSocket.close(CLOSE.NORMAL, "");
    socket.uncork();
    this.#wake();
  }

  #left(end: WebSocketEnd): void {
    this.#life.end(clientEnd(end), this.#webSocket.socket);
    this.#wake();
    // Input from before a proper Close is still typed.
    this.#run(end.isClean && this.#pendingBytes > 0 ? this.#typeRest() : this.#leave());
  }

  async #typeRest(): Promise<void> {
    if (!this.#isTyping) await this.#typeAll();
    await this.#leave();
  }

  async #leave(): Promise<void> {
    await this.#session.type(NOTHING, true);
  }

  #run(running: Promise<void>): void {
    running.catch((error: unknown) => {
      reportFault("session", error);
      this.end(endOf("internal-error", "the gateway failed to carry the join"));
    });
  }
}
