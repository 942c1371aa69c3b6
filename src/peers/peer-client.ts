import type { Socket } from "node:net";
import { askJsonOnce } from "../http/upstream/ask-json.ts";
import { type DialOptions, dial } from "../net/dial.ts";
import type { UpstreamTls } from "../net/tls.ts";
import type { PeerAddress } from "./peer-addresses.ts";
import {
  HELLO_PATH,
  type PeerHello,
  type PeerSessions,
  readHello,
  readPeerSessions,
  SESSIONS_PATH,
} from "./peer-protocol.ts";

/** Enough for some 10,000 sessions; a longer list is refused as a whole. */
const MAX_PEER_LIST_BYTES: number = 4 * 1024 * 1024;
const MAX_HELLO_BYTES = 16 * 1024;

interface PeerTimes {
  readonly peerDialMs: number;
  readonly peerListMs: number;
}

/** Sends requests to other replicas over mutual TLS, each on its own connection. */
export class PeerClient {
  /** Replaced when certificates are reloaded. */
  tls: UpstreamTls;
  readonly #times: PeerTimes;

  constructor(tls: UpstreamTls, times: PeerTimes) {
    this.tls = tls;
    this.#times = times;
  }

  /** Throws Error with a message for operators. */
  async hello(peer: PeerAddress): Promise<PeerHello> {
    return readHello(await this.#get(peer, HELLO_PATH, this.#times.peerDialMs, MAX_HELLO_BYTES));
  }

  /** Throws Error with a message for operators. */
  async sessions(peer: PeerAddress): Promise<PeerSessions> {
    return readPeerSessions(
      await this.#get(peer, SESSIONS_PATH, this.#times.peerListMs, MAX_PEER_LIST_BYTES),
    );
  }

  /** Like `dial`. */
  connect({ host, port }: PeerAddress, options: DialOptions): Promise<Socket> {
    return dial({ host, port, tls: this.tls }, { ...options, dialTimeoutMs: this.#times.peerDialMs });
  }

  async #get(
    { host, port }: PeerAddress,
    path: string,
    timeoutMs: number,
    maxBytes: number,
  ): Promise<unknown> {
    const { status, body } = await askJsonOnce({ host, port, tls: this.tls }, { path, timeoutMs, maxBytes });
    if (status !== 200) throw new Error(`it answered with status ${status}`);
    if (body === undefined) throw new Error("its answer is not JSON");
    return body;
  }
}
