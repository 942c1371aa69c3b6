import { EventEmitter } from "node:events";
import { Socket } from "node:net";

type Match = (emitter: EventEmitter, event: string) => boolean;

/**
 * Makes the next matching event throw, as if its first listener had thrown. Install this before
 * what it is to break.
 */
export class FaultInjection {
  readonly #emit = EventEmitter.prototype.emit;
  readonly #sockets = new Set<Socket>();
  #match: Match | undefined;

  constructor() {
    const injection = this;
    EventEmitter.prototype.emit = function (event, ...values) {
      if (this instanceof Socket) injection.#sockets.add(this);
      if (injection.#match?.(this, String(event)) === true) {
        injection.#match = undefined;
        throw new Error(`injected into '${String(event)}'`);
      }
      return injection.#emit.call(this, event, ...values);
    };
  }

  /** False once the exception was thrown. */
  get isArmed(): boolean {
    return this.#match !== undefined;
  }

  arm(match: Match): void {
    this.#match = match;
  }

  disarm(): void {
    this.#match = undefined;
  }

  /** Open sockets that have emitted at least one event. */
  sockets(match: (socket: Socket) => boolean): Socket[] {
    return [...this.#sockets].filter((socket) => !socket.destroyed && match(socket));
  }

  restore(): void {
    EventEmitter.prototype.emit = this.#emit;
  }
}
