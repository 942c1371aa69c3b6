import { isIP, type Socket } from "node:net";
import type { DialOptions } from "@sluice/client/internal/net/dial";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { SessionLists } from "../admin/admin-server.ts";
import type { OwnerRelay, SessionPeers } from "../sessions/context.ts";
import { OwnerGoneError } from "../sessions/resumable/session-owner.ts";
import type { EndRequest, EndResult } from "../sessions/session-actions.ts";
import { replicaOfSession } from "../sessions/session-id.ts";
import type { JoinAnswer, JoinRequest } from "../sessions/session-joins.ts";
import type { OutputAnswer, OutputRead } from "../sessions/session-outputs.ts";
import type { SessionFacts } from "../sessions/sessions.ts";
import type { PeerAddress, PeerAddresses } from "./peer-addresses.ts";
import type { PeerClient } from "./peer-client.ts";

/** How many replicas are queried at the same time. */
const PEERS_AT_ONCE = 16;

/** What another replica answered about its recordings. */
interface AskedPeer {
  readonly replica: string;
  readonly answer?: unknown;
  readonly problem?: string;
}

interface PeersOptions {
  readonly addresses: Pick<PeerAddresses, "list">;
  readonly client: Pick<
    PeerClient,
    | "hello"
    | "sessions"
    | "connect"
    | "endSession"
    | "sessionFacts"
    | "sessionOutput"
    | "typeInSession"
    | "recordings"
  >;
  /** This replica's id. */
  readonly id: string;
  readonly maxRelays: number;
  /** Time limit for the response to a resumption. */
  readonly responseMs: number;
  readonly onRelay: (result: RelayResult) => void;
}

/**
 * The result of a resumption at another replica: connected, no such replica, no answer, or too many
 * relays.
 */
type RelayResult = "connected" | "gone" | "silent" | "too-many";

/** The other replicas, by the ids in their answers. */
export class Peers implements SessionPeers {
  readonly #options: PeersOptions;
  readonly #addressOf = new Map<string, PeerAddress>();
  /**
   * This replica's own address, once a list has shown it: its sessions need no request over the
   * network.
   */
  #ownAddress: string | undefined;
  #asking: Promise<readonly string[]> | undefined;
  #relays = 0;

  constructor(options: PeersOptions) {
    this.#options = options;
  }

  get relays(): number {
    return this.#relays;
  }

  startRelay(replica: string): OwnerRelay | undefined {
    const { client, maxRelays, responseMs, onRelay } = this.#options;
    if (this.#relays >= maxRelays) {
      onRelay("too-many");
      return undefined;
    }
    this.#relays += 1;
    let hasEnded = false;
    const end = (): void => {
      if (hasEnded) return;
      hasEnded = true;
      this.#relays -= 1;
    };
    const connect = async (options: DialOptions): Promise<Socket> => {
      try {
        const socket = await this.#ask(replica, (peer) => client.connect(peer, options));
        socket.once("close", end);
        onRelay("connected");
        return socket;
      } catch (error) {
        onRelay(error instanceof OwnerGoneError ? "gone" : "silent");
        throw error;
      }
    };
    return { connect, end, responseMs };
  }

  /**
   * The given sessions of this replica, followed by those of the others; names the processes that did
   * not answer. Never rejects.
   */
  async listSessions(own: SessionLists): Promise<SessionLists> {
    const { addresses, client, id } = this.#options;
    const partial = [...own.partial];
    const others = addresses.list().filter(({ name }) => name !== this.#ownAddress);
    const lists = await inTurns(others, async (peer) => {
      try {
        const { replica, sessions, partial: missing } = await client.sessions(peer);
        if (replica !== id) {
          partial.push(...missing.map((each) => ({ ...each, replica: peer.name })));
          // A session's id names its replica, and only that replica can end it.
          return sessions
            .filter((session) => replicaOfSession(session.id) === replica)
            .map((session) => ({ ...session, replica: peer.name }));
        }
        // A host name may lead to another replica next time.
        if (isIP(peer.host) !== 0) this.#ownAddress = peer.name;
        return [];
      } catch (error) {
        partial.push({ replica: peer.name, problem: (error as Error).message });
        return [];
      }
    });
    return { sessions: [...own.sessions, ...lists.flat()], partial };
  }

  /** Asks every other replica about its recordings. Never rejects. */
  async askRecordings(question: object): Promise<readonly AskedPeer[]> {
    const others = this.#options.addresses.list().filter(({ name }) => name !== this.#ownAddress);
    const answers = await inTurns(others, async (peer) => {
      try {
        const { replica, answer } = await this.#options.client.recordings(peer, question);
        return replica === this.#options.id ? [] : [{ replica: peer.name, answer }];
      } catch (error) {
        // No replica runs behind a closed port, but its folder may be at another address.
        return [{ replica: peer.name, problem: (error as Error).message }];
      }
    });
    return answers.flat();
  }

  /** Asks the replica with this name about its recordings. Rejects with an Error for operators. */
  async askRecordingsOf(name: string, question: object): Promise<unknown> {
    const peer = this.#options.addresses.list().find((each) => each.name === name);
    if (peer === undefined) throw new Error(`the replica at ${name} is gone`);
    return (await this.#options.client.recordings(peer, question)).answer;
  }

  /** Undefined if the replica with this id has no such session, or does not answer. Never rejects. */
  async sessionFacts(replica: string, id: string): Promise<SessionFacts | undefined> {
    const { client } = this.#options;
    return await this.#ask(replica, (peer) => client.sessionFacts(peer, id)).catch(() => undefined);
  }

  /** Reads the output of a session of the replica with this id. Never rejects. */
  async sessionOutput(replica: string, read: OutputRead): Promise<OutputAnswer> {
    const { client } = this.#options;
    return await this.#ask(replica, (peer) => client.sessionOutput(peer, read)).catch((error: unknown) =>
      error instanceof OwnerGoneError ? "gone" : "unreachable",
    );
  }

  /** Types into a session of the replica with this id. Never rejects. */
  async typeInSession(replica: string, request: JoinRequest): Promise<JoinAnswer> {
    const { client } = this.#options;
    return await this.#ask(replica, (peer) => client.typeInSession(peer, request)).catch((error: unknown) =>
      error instanceof OwnerGoneError ? "unknown" : "unreachable",
    );
  }

  /** Ends a session of the replica with this id. Never rejects. */
  async endSession(replica: string, request: EndRequest): Promise<EndResult> {
    const { client } = this.#options;
    return await this.#ask(replica, (peer) => client.endSession(peer, request)).catch((error: unknown) =>
      error instanceof OwnerGoneError ? "unknown" : "unreachable",
    );
  }

  /**
   * Throws OwnerGoneError if no replica has this id, or nothing listens at its known address any
   * more; the next call then looks for it again.
   */
  async #ask<T>(replica: string, ask: (peer: PeerAddress) => Promise<T>): Promise<T> {
    const peer = await this.#find(replica);
    try {
      return await ask(peer);
    } catch (error) {
      if (!isRefused(error)) throw error;
      this.#addressOf.delete(replica);
      throw new OwnerGoneError(`the replica at ${peer.name} is gone`, { cause: error });
    }
  }

  /**
   * Throws OwnerGoneError if all replicas answered and none has this id, and UpstreamError if one
   * did not answer.
   */
  async #find(replica: string): Promise<PeerAddress> {
    const known = this.#addressOf.get(replica);
    const listed = this.#options.addresses.list();
    if (known !== undefined && listed.some(({ name }) => name === known.name)) return known;
    this.#addressOf.delete(replica);
    this.#asking ??= this.#askAll(listed).finally(() => {
      this.#asking = undefined;
    });
    const silent = await this.#asking;
    const found = this.#addressOf.get(replica);
    if (found !== undefined) return found;
    if (silent.length === 0) throw new OwnerGoneError("no replica has that name");
    throw new UpstreamError("dial-failed", `no answer from the replicas ${silent.join(", ")}`);
  }

  /** Resolves with the names of the replicas that did not answer. */
  async #askAll(peers: readonly PeerAddress[]): Promise<readonly string[]> {
    this.#addressOf.clear();
    const silent = await inTurns(peers, async (peer) => {
      try {
        const { replica } = await this.#options.client.hello(peer);
        this.#addressOf.set(replica, peer);
        return [];
      } catch (error) {
        // A closed port means that no replica runs there.
        return isRefused(error) ? [] : [peer.name];
      }
    });
    return silent.flat();
  }
}

function isRefused(error: unknown): boolean {
  const cause = error instanceof UpstreamError ? error.cause : error;
  return (cause as NodeJS.ErrnoException | undefined)?.code === "ECONNREFUSED";
}

/** Runs PEERS_AT_ONCE at a time, in the order of the list. */
async function inTurns<T, R>(items: readonly T[], run: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const next = items.entries();
  const lane = async (): Promise<void> => {
    for (const [index, item] of next) results[index] = await run(item);
  };
  await Promise.all(Array.from({ length: Math.min(PEERS_AT_ONCE, items.length) }, lane));
  return results;
}
