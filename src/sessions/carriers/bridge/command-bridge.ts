import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { faultOf, type SessionEnd } from "@sluice/client/internal/sessions/session-end";
import { NOTHING } from "@sluice/protocols/bytes";
import type { WebSocketLimits } from "@sluice/protocols/websocket";
import { feed } from "../../../net/feed.ts";
import { ReadAhead } from "../../../net/read-ahead.ts";
import type { SessionLifecycle } from "../../lifecycle.ts";
import { type Conclusion, failedBy } from "../../observers/command-result.ts";
import { RESIZE, STDERR, STDIN, STDOUT } from "../../observers/session-observer.ts";
import type { InputResult, StreamingSession } from "../../session.ts";
import { CloseTimeout, leaveBehindInput } from "../end-waits.ts";
import { InputHold } from "../input-hold.ts";
import { terminalWarning } from "../terminal-warning.ts";
import type { CommandClient, CommandClientHandler } from "./command-client.ts";
import { V5Upstream } from "./v5-upstream.ts";

interface CommandBridgeOptions {
  readonly webSocketLimits: WebSocketLimits;
  /** True if stdout is a terminal, where a warning may be written. */
  readonly hasTerminal: boolean;
  /**
   * An attached process is the container's own: it outlives this session's input, so nothing waits
   * for it to end.
   */
  readonly isAttach?: boolean;
  /** Builds the client's end of the session on `downstream`'s socket. */
  clientOf(handler: CommandClientHandler): CommandClient;
}

/**
 * Carries exec and attach between a client without v5 and a v5 upstream. Output waits until the client
 * has opened its streams. An upstream that ends without a status becomes a Failure.
 */
export class CommandBridge implements StreamingSession {
  readonly #client: CommandClient;
  readonly #upstream: V5Upstream;
  readonly #life: SessionLifecycle;
  readonly #overdueEnd = new CloseTimeout();
  readonly #hasTerminal: boolean;
  readonly #isAttach: boolean;
  readonly #upstreamConnection: UpgradedConnection;
  readonly #ahead: ReadAhead;
  readonly #hold: InputHold;
  #hasInputEnded = false;
  #hasResult = false;
  #isFinishing = false;
  #early: Conclusion | undefined;

  constructor(
    downstream: UpgradedConnection,
    upstream: UpgradedConnection,
    options: CommandBridgeOptions,
    life: SessionLifecycle,
  ) {
    this.#upstreamConnection = upstream;
    this.#hasTerminal = options.hasTerminal;
    this.#isAttach = options.isAttach === true;
    this.#life = life;
    this.#ahead = new ReadAhead(life.info?.user ?? "");
    this.#client = options.clientOf({
      onReady: () => this.#clientIsReady(),
      onInput: (part) => {
        if (life.observers.isRefused(this, STDIN, "client", part)) return;
        life.upstreamBytes += part.byteLength;
        this.#hold.pass(this.#sendInput, part);
      },
      onInputEnd: () => {
        this.#hasInputEnded = true;
        life.observers.streamEnd(STDIN, "client");
        this.#hold.pass(this.#endInput, NOTHING);
      },
      onResize: (part) => {
        if (!life.observers.isRefused(this, RESIZE, "client", part)) this.#hold.pass(this.#resize, part);
      },
      onEnd: (end, endsInput) => this.#clientEnded(end, endsInput === true),
    });
    this.#upstream = new V5Upstream(
      upstream,
      {
        onOutput: (stream, part) => {
          if (life.observers.isRefused(this, stream === "stdout" ? STDOUT : STDERR, "node", part)) return;
          life.downstreamBytes += part.byteLength;
          this.#client.sendOutput(stream, part);
        },
        onStatus: (part, isComplete) => {
          life.observers.status(part);
          if (!isComplete) return;
          this.#hasResult = true;
          this.#overdueEnd.statusCame(life.clock.now());
        },
        onStatusEnd: () => life.observers.statusEnd(),
        onEnd: (conclusion) => this.#upstreamEnded(conclusion),
      },
      options.webSocketLimits,
      life,
    );
    const input = feed(
      downstream.socket,
      upstream.socket,
      (chunk) => this.#client.receive(chunk),
      life.pace("client"),
    );
    this.#hold = new InputHold(this.#ahead, input, this.#hasTerminal, () => this.#hasResult);
    this.#client.start();
    upstream.socket.cork();
    if (downstream.head.byteLength > 0) this.#client.receive(downstream.head);
    upstream.socket.uncork();
  }

  tick(nowMs: number): void {
    this.#client.tick(nowMs);
    this.#upstream.tick(nowMs);
    const { streamCreationMs } = this.#life.timeouts;
    if (!this.#client.isReady && nowMs - this.#life.startedMs >= streamCreationMs) {
      this.#fail(faultOf("client", "stream-creation-timeout", "the client did not open its streams in time"));
    } else if (
      !this.#isFinishing &&
      this.#overdueEnd.isDue(nowMs, this.#life.downstreamBytes, this.#upstreamConnection.socket.isPaused())
    ) {
      this.#finish(this.#upstream.conclude());
    }
  }

  end(end: SessionEnd): void {
    this.#fail(end);
  }

  warn(message: string): void {
    if (this.#hasTerminal && this.#client.isReady)
      this.#client.sendOutput("stdout", terminalWarning(message));
  }

  get readsInput(): boolean {
    return !this.#life.isOver && !this.#hasResult && !this.#hasInputEnded;
  }

  input(bytes: Uint8Array, by: string): InputResult {
    if (!this.readsInput) return "no-input";
    const isBusy = this.#client.isInMessage || !this.#client.isReady;
    if (isBusy || !this.#hold.takes(bytes, this.#upstreamConnection.socket)) return "later";
    if (this.#life.observers.isRefused(this, { ...STDIN, by }, "client", bytes)) return "no-input";
    this.#life.upstreamBytes += bytes.byteLength;
    this.#hold.pass(this.#sendInput, bytes);
    return "taken";
  }

  /**
   * Drops input after the command's status: the process no longer reads it, and a late write can reset
   * the connection.
   */
  readonly #sendInput = (part: Uint8Array): void => {
    if (!this.#hasResult) this.#upstream.sendInput(part);
  };

  readonly #endInput = (): void => {
    if (!this.#hasResult) this.#upstream.endInput();
  };

  readonly #resize = (part: Uint8Array): void => {
    if (!this.#hasResult) this.#upstream.resize(part);
  };

  #clientIsReady(): void {
    if (this.#life.isOver) return;
    if (this.#early !== undefined) {
      this.#finish(this.#early);
      return;
    }
    const { socket, head } = this.#upstreamConnection;
    const downstream = this.#client.socket;
    const receive = (chunk: Uint8Array): void => {
      this.#upstream.receive(chunk);
      this.#hold.heard(chunk.byteLength);
    };
    feed(socket, downstream, receive, this.#life.pace("node"), this.#ahead);
    if (head.byteLength === 0) return;
    downstream.cork();
    this.#upstream.receive(head);
    downstream.uncork();
  }

  /** Output waits until the client is ready, but a broken upstream is noticed at once. */
  #upstreamEnded(conclusion: Conclusion): void {
    if (this.#life.isOver) return;
    if (this.#client.isReady) this.#finish(conclusion);
    else this.#early = conclusion;
  }

  /** Delivers the accepted input before stdin ends. */
  #clientEnded(end: SessionEnd, endsInput: boolean): void {
    if (this.#life.isOver) return;
    this.#hold.flush();
    this.#over(end);
    if (endsInput) this.#upstream.endInput();
    if (endsInput && !this.#isAttach) {
      leaveBehindInput(this.#upstreamConnection.socket, this.#life.clock, () => this.#upstream.leave());
    } else {
      this.#upstream.leave();
    }
    this.#client.leave();
  }

  #fail(end: SessionEnd): void {
    if (this.#life.isOver) return;
    this.#conclude(failedBy(end));
    this.#upstream.leave();
  }

  #finish(conclusion: Conclusion): void {
    if (this.#isFinishing) return;
    this.#isFinishing = true;
    this.#life.passReport(() => this.#conclude(conclusion));
  }

  /** All output has been passed on: sends the status, then ends the session. */
  #conclude({ end, status }: Conclusion): void {
    this.#over(end);
    this.#client.finish(status);
  }

  #over(end: SessionEnd): void {
    this.#hold.drop();
    this.#life.end(end, this.#client.socket, () => this.#client.hasSentStatus);
  }
}
