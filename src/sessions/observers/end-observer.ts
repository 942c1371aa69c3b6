import { type RemoteCommandVersion, specOf } from "../../../protocols/remotecommand/index.ts";
import { endOf, type SessionEnd } from "../session-end.ts";
import { CommandResult } from "./command-result.ts";
import type { SessionObserver } from "./session-observer.ts";

/** How the sides of a session announce that they end it, in the framing of what carries it: Close frames, GOAWAY, the end of a connection. */
export interface Farewells {
  clientLeft(how: string): void;
  /** `isOrderly`: it was no failure. `how`: where the framing has a reason. */
  nodeLeft(isOrderly: boolean, how?: string): void;
}

/** Knows how a session that passes through ends, and which side ended it. */
export abstract class EndObserver implements SessionObserver, Farewells {
  readonly isRequired = true;
  #clientLeft: string | undefined;
  #nodeLeft: { readonly isOrderly: boolean; readonly how: string | undefined } | undefined;
  /** The client said its farewell behind the node's result, or the node's own: it has everything. */
  hasAcknowledged = false;

  /** The node has reported how the session ended. */
  abstract get hasResult(): boolean;
  /** The node has begun to report it: nothing may be reported in its place. */
  abstract get hasStatus(): boolean;
  /** `how` the node's connection ended is all there is where it reported nothing. */
  protected abstract judge(how: string, isOrderly: boolean): SessionEnd;

  /** Behind the node's result, or its farewell, this is no more than the answer to it. */
  clientLeft(how: string): void {
    if (this.hasResult || this.#nodeLeft !== undefined) this.hasAcknowledged = true;
    else this.#clientLeft ??= how;
  }

  /** The client ended the session before the node did. */
  get hasClientLeft(): boolean {
    return this.#clientLeft !== undefined;
  }

  nodeLeft(isOrderly: boolean, how?: string): void {
    this.#nodeLeft ??= { isOrderly, how };
  }

  protected get hasNodeLeft(): boolean {
    return this.#nodeLeft !== undefined;
  }

  protected get hasNodeLeftOrderly(): boolean {
    return this.#nodeLeft?.isOrderly === true;
  }

  /** The outcome if the session is over now; `how`: the way in which the node's connection ended. */
  nodeEnd(how: string): SessionEnd {
    if (this.#clientLeft !== undefined) return endOf("client-gone", this.#clientLeft);
    return this.judge(this.#nodeLeft?.how ?? how, this.hasNodeLeftOrderly);
  }
}

/** An exec or attach: its end is the status that the node reports. */
export class CommandEndObserver extends EndObserver {
  readonly #isText: boolean;
  readonly #isResetFirst: boolean;
  readonly #result: CommandResult;
  #hasStatus = false;
  #hasResult = false;
  #isStatusEnded = false;

  constructor(version: RemoteCommandVersion, transport: "spdy" | "websocket") {
    super();
    this.#isText = !specOf(version).hasStatusJson;
    // v1 servers reset the error stream before the command begins.
    this.#isResetFirst = transport === "spdy" && version === "channel.k8s.io";
    this.#result = new CommandResult(version);
  }

  get hasStatus(): boolean {
    return this.#hasStatus;
  }

  get hasResult(): boolean {
    return this.#hasResult || (this.#hasStatus && this.hasNodeLeft);
  }

  onStatus(part: Uint8Array): void {
    this.#hasStatus = true;
    this.#result.receive(part);
    if (!this.#hasResult) this.#hasResult = this.#result.isComplete;
  }

  /** Before v4 success is an error stream that ends empty. */
  onStatusEnd(): void {
    this.#isStatusEnded = true;
    if (!this.#isText) return;
    this.#hasStatus = true;
    if (!this.#isResetFirst) this.#hasResult = true;
  }

  protected judge(how: string): SessionEnd {
    this.#result.end(this.#isStatusEnded);
    return this.#result.conclude(`${how} without a status`).end;
  }
}

/** A port-forward: Kubernetes' peers say GOAWAY, or close with 1000, before they end it; a killed one sends nothing. */
export class ForwardEndObserver extends EndObserver {
  readonly #expected: string;

  /** `expected`: the farewell that the node owes, for the log; "" where another one has been read. */
  constructor(expected: "GOAWAY" | "") {
    super();
    this.#expected = expected;
  }

  get hasStatus(): boolean {
    return this.hasResult;
  }

  get hasResult(): boolean {
    return this.hasNodeLeftOrderly;
  }

  protected judge(how: string, isOrderly: boolean): SessionEnd {
    if (isOrderly) return endOf("completed", how);
    return endOf("upstream-lost", this.#expected === "" ? how : `${how} without ${this.#expected}`);
  }
}
