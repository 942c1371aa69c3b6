import { encodePing } from "@sluice/protocols/spdy";

/** PINGs that are remembered for a SPDY client that does not read. Past it they get no answer. */
const MAX_OWED_PINGS = 64;

/**
 * Answers and sends the PINGs of a SPDY connection that passes through; none is forwarded. A client's
 * ids are odd, a node's even.
 */
export class SpdyPings {
  readonly #clientPings: number[] = [];
  #nodePing: number | undefined;
  #lastBeat = -1;

  /** Ignores even ids: they answer a node's PING, and the client never receives one. */
  fromClient(id: number): void {
    if (isOdd(id) && this.#clientPings.length < MAX_OWED_PINGS) this.#clientPings.push(id);
  }

  /** Ignores odd ids: they answer the gateway's own heartbeats. */
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

  /** Answers only the newest PING: answers wait until the node has been silent for seconds. */
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
