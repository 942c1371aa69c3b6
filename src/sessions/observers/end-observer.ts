import { endOf, type SessionEnd } from "@sluice/client/internal/sessions/session-end";
import { type RemoteCommandVersion, specOf } from "@sluice/protocols/remotecommand";
import { CommandResult } from "./command-result.ts";
import type { SessionObserver } from "./session-observer.ts";

/**
 * Receives each side's announcement that it ends the session: a Close frame, GOAWAY, or the end of the
 * connection.
 */
export interface Farewells {
  clientLeft(how: string): void;
  /** `isOrderly`: not a failure. `how`: the reason, if the framing carries one. */
  nodeLeft(isOrderly: boolean, how?: string): void;
}

/** Finds out how a pass-through session ended, and which side ended it. */
export abstract class EndObserver implements SessionObserver, Farewells {
  readonly isRequired = true;
  #clientLeft: string | undefined;
  #nodeLeft: { readonly isOrderly: boolean; readonly how: string | undefined } | undefined;
  /** The client said farewell after the node's result or farewell, so it has everything. */
  hasAcknowledged = false;

  /** True if the node has reported how the session ended. */
  abstract get hasResult(): boolean;
  /** True if the node has begun that report; then the gateway must not write its own. */
  abstract get hasStatus(): boolean;
  /** The outcome. `how` the node's connection ended decides if the node reported nothing. */
  protected abstract judge(how: string, isOrderly: boolean): SessionEnd;

  /** After the node's result or farewell, the client's farewell only answers it. */
  clientLeft(how: string): void {
    if (this.hasResult || this.#nodeLeft !== undefined) this.hasAcknowledged = true;
    else this.#clientLeft ??= how;
  }

  /** True if the client ended the session before the node did. */
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

  /** The outcome if the session ends now; `how`: how the node's connection ended. */
  nodeEnd(how: string): SessionEnd {
    if (this.#clientLeft !== undefined) return endOf("client-gone", this.#clientLeft);
    return this.judge(this.#nodeLeft?.how ?? how, this.hasNodeLeftOrderly);
  }
}

/** Exec and attach end with the status that the node reports. */
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
    // v1 servers reset the error stream before the command starts.
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

  /** Before v4, an error stream that ends empty means success. */
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

/** Port-forwards end properly with GOAWAY or Close 1000. A killed peer sends neither. */
export class ForwardEndObserver extends EndObserver {
  readonly #expected: string;

  /** `expected`: the farewell that the node owes, for the log; "" if another decoder reads it. */
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
