import type { Socket } from "node:net";
import { systemErrorText } from "@sluice/client/internal/config/system-error";

/** The calls that one side accepts, by name: the body that is sent, and the answer. */
type Calls = Readonly<Record<string, { readonly body: unknown; readonly answer: unknown }>>;

/** One side's handlers. `socket` is the socket sent with the call, if any. */
export type Handlers<Local extends Calls> = {
  readonly [Name in keyof Local]: (
    body: Local[Name]["body"],
    socket: Socket | undefined,
  ) => Answered<Local[Name]["answer"]>;
};

/** The return value of a handler without an answer is ignored. */
type Answered<Answer> = [Answer] extends [undefined] ? unknown : Answer | Promise<Answer>;

/** A child process; in the child, `process` itself. */
export interface MessagePort {
  send?(message: unknown, socket?: Socket, options?: object, done?: (error: Error | null) => void): boolean;
  on(event: "message", listener: (message: unknown, socket: unknown) => void): unknown;
  on(event: "disconnect", listener: () => void): unknown;
}

type Envelope =
  | { readonly type: "call"; readonly name: string; readonly body: unknown; readonly id?: number }
  | { readonly type: "answer"; readonly id: number; readonly value?: unknown; readonly problem?: string };

interface Waiting {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Calls between the primary and a worker over Node's IPC channel. If the channel breaks, every pending
 * call is rejected.
 */
export class Link<Local extends Calls, Remote extends Calls> {
  readonly #port: MessagePort;
  readonly #handlers: Handlers<Local>;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;

  constructor(port: MessagePort, handlers: Handlers<Local>) {
    this.#port = port;
    this.#handlers = handlers;
    port.on("message", (message, socket) => this.#receive(message as Envelope, socket as Socket | undefined));
    port.on("disconnect", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the other process is gone"));
      this.#waiting.clear();
    });
  }

  /**
   * Sends a call without an answer. The socket stays open here, too. `onLost` is called if the call
   * could not be sent, but not if the other process dies later.
   */
  notify<Name extends keyof Remote & string>(
    name: Name,
    body: Remote[Name]["body"],
    socket?: Socket,
    onLost: () => void = () => {},
  ): void {
    this.#send({ type: "call", name, body }, socket, (isSent) => {
      if (!isSent) onLost();
    });
  }

  request<Name extends keyof Remote & string>(
    name: Name,
    body: Remote[Name]["body"],
  ): Promise<Remote[Name]["answer"]> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send({ type: "call", name, body, id }, undefined, (isSent) => {
        if (isSent) return;
        this.#waiting.delete(id);
        reject(new Error("the other process is gone"));
      });
    });
  }

  #send(envelope: Envelope, socket: Socket | undefined, done: (isSent: boolean) => void): void {
    try {
      if (this.#port.send === undefined) done(false);
      else this.#port.send(envelope, socket, { keepOpen: true }, (error) => done(error === null));
    } catch {
      // The channel closed during this tick.
      done(false);
    }
  }

  #receive(envelope: Envelope, socket: Socket | undefined): void {
    if (envelope.type === "answer") {
      const waiting = this.#waiting.get(envelope.id);
      this.#waiting.delete(envelope.id);
      if (envelope.problem === undefined) waiting?.resolve(envelope.value as never);
      else waiting?.reject(new Error(envelope.problem));
      return;
    }
    void this.#answer(envelope.name, envelope.body, envelope.id, socket);
  }

  async #answer(
    name: string,
    body: unknown,
    id: number | undefined,
    socket: Socket | undefined,
  ): Promise<void> {
    let answer: { value?: unknown; problem?: string };
    try {
      answer = { value: await this.#handlers[name]?.(body, socket) };
    } catch (error) {
      answer = { problem: systemErrorText(error) };
    }
    if (id !== undefined) this.#send({ type: "answer", id, ...answer }, undefined, () => {});
  }
}
