import { streamHeaders } from "@sluice/protocols/portforward";
import type { SpdyStream, SpdyStreamHandler } from "@sluice/protocols/spdy";
import type { SessionStream, Side } from "../../observers/session-observer.ts";
import type { ConnectionUser, NodeConnection } from "./node-connections.ts";

/** One of the client's two streams of a forwarded connection. */
export interface ClientStream {
  readonly stream: SpdyStream;
  readonly shown: SessionStream;
  /** Set once both streams are open. */
  pair?: ForwardedPair | undefined;
  /** Data that came before the pair. */
  early: Uint8Array[];
  hasFinished: boolean;
}

interface PairParts {
  readonly requestId: string;
  readonly port: number;
  readonly error: ClientStream;
  readonly data: ClientStream;
}

/** The session of a forwarded connection, as the connection uses it. */
export interface PairOwner {
  /** Counts payload and shows it to observers. False: the session has ended. */
  carries(stream: SessionStream, from: Side, part: Uint8Array): boolean;
  ended(stream: SessionStream, from: Side): void;
  /** True if the client may get this text on its error stream. If not, logs it. */
  tell(pair: ForwardedPair, text: string): boolean;
  /** Call after a write to the node. */
  wrote(connection: NodeConnection): void;
  /** Counts bytes that wait for a connection to the node; negative: they no longer wait. */
  early(bytes: number): void;
  /** `endedWhole`: both sides finished, and neither was cut short. */
  over(pair: ForwardedPair, connection: NodeConnection | undefined, endedWhole: boolean): void;
}

/** One forwarded connection: the client's two streams, and the node's two, on a connection of their own. */
export class ForwardedPair implements ConnectionUser {
  readonly requestId: string;
  readonly port: number;
  readonly #error: ClientStream;
  readonly #data: ClientStream;
  readonly #owner: PairOwner;
  #connection: NodeConnection | undefined;
  #nodeData: SpdyStream | undefined;
  #nodeError: SpdyStream | undefined;
  #hasWithheld = false;
  #wasReset = false;
  #isNodeDone = { data: false, error: false };
  #isOver = false;

  constructor({ requestId, port, error, data }: PairParts, owner: PairOwner) {
    this.requestId = requestId;
    this.port = port;
    this.#error = error;
    this.#data = data;
    this.#owner = owner;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Opens the node's streams, and passes on what the client has sent meanwhile. */
  connect(connection: NodeConnection): void {
    this.#connection = connection;
    const { requestId, port } = this;
    connection.peer.batch(() => {
      const open = (streamType: "error" | "data", handler: SpdyStreamHandler) =>
        connection.peer.openStream(streamHeaders({ streamType, port, requestId }), handler);
      this.#nodeError = open("error", this.#errorHandler);
      this.#nodeError.finish();
      this.#nodeData = open("data", this.#dataHandler);
      for (const part of this.#takeEarly()) this.#nodeData.write(part);
      if (this.#data.hasFinished) this.#nodeData.finish();
    });
  }

  /** Sends the client's data to the node. The memory may be reused after the call. */
  write(part: Uint8Array): void {
    if (this.#isOver || part.byteLength === 0) return;
    const connection = this.#connection;
    if (connection === undefined) {
      this.#data.early.push(Uint8Array.from(part));
      this.#owner.early(part.byteLength);
    } else {
      connection.peer.batch(() => this.#nodeData?.write(part));
      this.#owner.wrote(connection);
    }
  }

  finish(): void {
    this.#data.hasFinished = true;
    this.#nodeData?.finish();
    this.#endIfOver();
  }

  /**
   * The client reset its data stream: it has gone, or needs no more. kubectl then waits for the end
   * of its error stream.
   */
  clientReset(): void {
    if (this.#isOver) return;
    const { data, error } = this.#isNodeDone;
    if (data && !error) {
      // A kubelet ends the data before it gives the reason for its refusal.
      this.#data.hasFinished = true;
      this.#wasReset = true;
      this.#nodeData?.reset();
    } else {
      this.#error.stream.finish();
      this.#over();
    }
  }

  /** The forwarded connection broke before its end. */
  fail(message: string): void {
    if (this.#isOver) return;
    this.#tell(new TextEncoder().encode(message));
    this.#endClient();
    this.#over();
  }

  /** The whole session ends. */
  cut(reason: Uint8Array): void {
    if (this.#isOver) return;
    this.#error.stream.write(reason);
    this.#endClient();
    this.#over();
  }

  connectionLost(how: string): void {
    this.fail(`error forwarding port ${this.port}: lost connection to the node: ${how}`);
  }

  readonly #dataHandler: SpdyStreamHandler = {
    onData: (part, fin) => {
      if (this.#isOver) return;
      if (part.byteLength > 0) {
        if (!this.#owner.carries(this.#data.shown, "node", part)) return;
        this.#data.stream.write(part);
      }
      if (!fin) return;
      this.#owner.ended(this.#data.shown, "node");
      this.#data.stream.finish();
      this.#isNodeDone.data = true;
      this.#endIfOver();
    },
    onEnd: ({ type }) => {
      if (type !== "reset" || this.#isOver) return;
      this.#owner.ended(this.#data.shown, "node");
      this.#data.stream.reset();
      this.#wasReset = true;
      this.#isNodeDone.data = true;
      this.#data.hasFinished = true;
      this.#endIfOver();
    },
  };

  readonly #errorHandler: SpdyStreamHandler = {
    onData: (part, fin) => {
      if (this.#isOver) return;
      if (part.byteLength > 0) {
        if (!this.#owner.carries(this.#error.shown, "node", part)) return;
        this.#tell(part);
      }
      if (fin) this.#errorEnded();
    },
    onEnd: ({ type }) => {
      if (type === "reset" && !this.#isOver) this.#errorEnded();
    },
  };

  #errorEnded(): void {
    this.#owner.ended(this.#error.shown, "node");
    this.#error.stream.finish();
    this.#isNodeDone.error = true;
    this.#endIfOver();
  }

  #tell(text: Uint8Array): void {
    if (this.#owner.tell(this, new TextDecoder().decode(text))) this.#error.stream.write(text);
    else this.#hasWithheld = true;
  }

  /** A node that reported an error leaves the data stream open, or resets it. */
  #endIfOver(): void {
    const { data, error } = this.#isNodeDone;
    if (error && !data && this.#hasWithheld) {
      this.#endClient();
      this.#over();
    } else if (error && data && this.#data.hasFinished) this.#over(!this.#wasReset);
  }

  #endClient(): void {
    this.#error.stream.finish();
    this.#data.stream.reset();
  }

  #takeEarly(): Uint8Array[] {
    const early = this.#data.early.splice(0);
    this.#owner.early(-sizeOf(early));
    return early;
  }

  #over(endedWhole = false): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#takeEarly();
    const connection = this.#connection;
    if (connection !== undefined && !connection.peer.isOver) {
      connection.peer.batch(() => {
        this.#nodeData?.reset();
        this.#nodeError?.reset();
      });
    }
    this.#owner.over(this, connection, endedWhole);
  }
}

export function sizeOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.byteLength, 0);
}
