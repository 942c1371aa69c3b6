import { encodePing } from "../../../protocols/spdy/index.ts";

/** PINGs of a client that does not read its answers; those past it stay unanswered. */
export const MAX_OWED_PINGS = 64;

/** The heartbeats of a SPDY connection that passes through, none of which does: a client's ids are odd, a node's even. */
export class SpdyPings {
  readonly #clientPings: number[] = [];
  #nodePing: number | undefined;
  #lastBeat = -1;

  /** An even id answers a PING of the node's, which the client was never sent. */
  fromClient(id: number): void {
    if (isOdd(id) && this.#clientPings.length < MAX_OWED_PINGS) this.#clientPings.push(id);
  }

  /** An odd id answers a heartbeat of ours. */
  fromNode(id: number): void {
    if (!isOdd(id)) this.#nodePing = id;
  }

  get isAnswerDue(): boolean {
    return this.#clientPings.length > 0;
  }

  answerClient(): Uint8Array | undefined {
    if (!this.isAnswerDue) return undefined;
    return Buffer.concat(this.#clientPings.splice(0).map((id) => encodePing({ type: "PING", id })));
  }

  /** Its newest PING alone: it was not sent anything for seconds. */
  answerNode(): Uint8Array | undefined {
    const id = this.#nodePing;
    this.#nodePing = undefined;
    return id === undefined ? undefined : encodePing({ type: "PING", id });
  }

  beatNode(): Uint8Array {
    this.#lastBeat += 2;
    return encodePing({ type: "PING", id: this.#lastBeat });
  }
}

function isOdd(id: number): boolean {
  return (id & 1) === 1;
}
