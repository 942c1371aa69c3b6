import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { HeaderList } from "@sluice/client/internal/http/header-list";
import { askJsonOnce } from "@sluice/client/internal/http/upstream/ask-json";
import { type DialOptions, dial } from "@sluice/client/internal/net/dial";
import type { UpstreamTls } from "@sluice/client/internal/net/tls";
import type { AdminSession, MissingSessions } from "../admin/admin-server.ts";
import { ListCost } from "../api/list-cost.ts";
import {
  END_HOP_MS,
  type EndRequest,
  type EndResult,
  MAX_END_MS,
  readEndResult,
} from "../sessions/session-actions.ts";
import {
  type JoinAnswer,
  type JoinRequest,
  MAX_JOINED_STATUS_BYTES,
  readJoinAnswer,
} from "../sessions/session-joins.ts";
import {
  OUTPUT_WAIT_MS,
  type OutputAnswer,
  type OutputRead,
  readOutputAnswer,
} from "../sessions/session-outputs.ts";
import type { SessionFacts } from "../sessions/sessions.ts";
import type { PeerAddress } from "./peer-addresses.ts";
import {
  AFTER_HEADER,
  HELLO_PATH,
  PEER_PAGE_SESSIONS,
  type PeerHello,
  type PeerSessions,
  RECORDINGS_PATH,
  readHello,
  readPeerSessions,
  SESSIONS_PATH,
  sessionPathOf,
  VIEWER_HEADER,
} from "./peer-protocol.ts";

/**
 * One page of a replica's list, or the whole list of an older release. Past it /sessions names the
 * replica under `partial`.
 */
const MAX_PEER_LIST_BYTES: number = 4 * 1024 * 1024;
/**
 * Pages of one replica's list. Past it, at 100,000 sessions, /sessions names the replica under
 * `partial`.
 */
const MAX_PEER_PAGES = 100;
const MAX_PEER_SESSIONS = MAX_PEER_PAGES * PEER_PAGE_SESSIONS;
/**
 * Time for all pages of one replica's list, in `timeouts.peerList`. Past it /sessions names the
 * replica under `partial`.
 */
const MAX_PEER_LIST_TIMES = 10;
const MAX_HELLO_BYTES = 16 * 1024;

interface PeerRecordingsAnswer {
  /** The peer's id. */
  readonly replica: string;
  readonly answer: unknown;
}

interface PeerTimes {
  readonly peerDialMs: number;
  readonly peerListMs: number;
}

/**
 * True if the page has nothing for the viewer yet. A view's first page only has to say where the
 * view begins.
 */
function hasToWait(page: OutputAnswer, after: number): boolean {
  if (typeof page === "string" || page.isOver || page.events.length > 0) return false;
  return after >= 0 || page.next < 0;
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

  /** All of the peer's sessions, page by page. Throws Error with a message for operators. */
  async sessions(peer: PeerAddress): Promise<PeerSessions> {
    const sessions: AdminSession[] = [];
    // Keyed by worker, because pages may come from several lists.
    const missing = new Map<number | undefined, MissingSessions>();
    const cost = new ListCost();
    let after = "";
    const { peerListMs } = this.#times;
    const deadlineMs = performance.now() + MAX_PEER_LIST_TIMES * peerListMs;
    for (let pages = 0; pages < MAX_PEER_PAGES; pages++) {
      const headers = [[AFTER_HEADER, after]] as const;
      const page = readPeerSessions(
        await this.#get(peer, SESSIONS_PATH, peerListMs, MAX_PEER_LIST_BYTES, headers),
      );
      if (performance.now() > deadlineMs) {
        throw new Error(`its list takes longer than ${MAX_PEER_LIST_TIMES} times timeouts.peerList`);
      }
      if (sessions.length + page.sessions.length > MAX_PEER_SESSIONS) {
        throw new Error(`it has more than ${MAX_PEER_SESSIONS} sessions`);
      }
      cost.add(page.sessions);
      sessions.push(...page.sessions);
      for (const each of page.partial) missing.set(each.worker, each);
      if (page.next === undefined) return { ...page, sessions, partial: [...missing.values()] };
      if (page.next <= after) throw new Error("its pages do not go on");
      after = page.next;
    }
    throw new Error(`it has more than ${MAX_PEER_PAGES} pages of sessions`);
  }

  /**
   * Undefined if the peer runs no such session. Throws Error with a message for operators, and
   * UpstreamError.
   */
  async sessionFacts(peer: PeerAddress, id: string): Promise<SessionFacts | undefined> {
    const { peerListMs } = this.#times;
    const answer = await this.#get(peer, sessionPathOf(id, "facts"), peerListMs, MAX_PEER_LIST_BYTES);
    readHello(answer);
    return readFacts((answer as { readonly facts?: unknown }).facts);
  }

  /** Throws Error with a message for operators, and UpstreamError. */
  async sessionOutput(peer: PeerAddress, { id, viewer, after }: OutputRead): Promise<OutputAnswer> {
    const headers = [[VIEWER_HEADER, viewer] as const, [AFTER_HEADER, String(after)] as const];
    const timeoutMs = OUTPUT_WAIT_MS + this.#times.peerListMs;
    const startMs = performance.now();
    const answer = await this.#get(
      peer,
      sessionPathOf(id, "output"),
      timeoutMs,
      MAX_PEER_LIST_BYTES,
      headers,
    );
    readHello(answer);
    const page = readOutputAnswer((answer as { readonly output?: unknown }).output);
    // A peer that does not wait for output would make its viewers poll without a pause.
    const leftMs = OUTPUT_WAIT_MS - (performance.now() - startMs);
    if (leftMs > 0 && hasToWait(page, after)) await delay(leftMs);
    return page;
  }

  /** Ends a session of this peer. Throws Error with a message for operators, and UpstreamError. */
  async endSession(peer: PeerAddress, { id, ...request }: EndRequest): Promise<EndResult> {
    const timeoutMs = MAX_END_MS + 3 * END_HOP_MS;
    const answer = await this.#post(peer, sessionPathOf(id, "end"), request, timeoutMs, MAX_HELLO_BYTES);
    return readEndResult((answer as { readonly result?: unknown }).result);
  }

  /** Types into a session of this peer. Throws Error with a message for operators, and UpstreamError. */
  async typeInSession(peer: PeerAddress, { id, ...request }: JoinRequest): Promise<JoinAnswer> {
    const maxBytes = MAX_HELLO_BYTES + MAX_JOINED_STATUS_BYTES;
    const answer = await this.#post(peer, sessionPathOf(id, "input"), request, 3 * END_HOP_MS, maxBytes);
    return readJoinAnswer((answer as { readonly typed?: unknown }).typed);
  }

  /** Asks this peer about its recordings. Throws Error with a message for operators, and UpstreamError. */
  async recordings(peer: PeerAddress, question: object): Promise<PeerRecordingsAnswer> {
    const { peerListMs } = this.#times;
    const body = await this.#post(peer, RECORDINGS_PATH, question, peerListMs, MAX_PEER_LIST_BYTES);
    return { replica: readHello(body).replica, answer: (body as { readonly answer?: unknown }).answer };
  }

  /** Like `dial`. */
  connect({ host, port }: PeerAddress, options: DialOptions): Promise<Socket> {
    return dial({ host, port, tls: this.tls }, { ...options, dialTimeoutMs: this.#times.peerDialMs });
  }

  async #post(
    { host, port }: PeerAddress,
    path: string,
    request: object,
    timeoutMs: number,
    maxBytes: number,
  ): Promise<unknown> {
    const bytes = Buffer.from(JSON.stringify(request));
    const sent = { contentType: "application/json", bytes };
    const { status, body } = await askJsonOnce(
      { host, port, tls: this.tls },
      { method: "POST", path, body: sent, timeoutMs, maxBytes },
    );
    if (status !== 200) throw new Error(`it answered with status ${status}`);
    readHello(body);
    return body;
  }

  async #get(
    { host, port }: PeerAddress,
    path: string,
    timeoutMs: number,
    maxBytes: number,
    headers: HeaderList = [],
  ): Promise<unknown> {
    const request = { path, timeoutMs, maxBytes, headers };
    const { status, body } = await askJsonOnce({ host, port, tls: this.tls }, request);
    if (status !== 200) throw new Error(`it answered with status ${status}`);
    if (body === undefined) throw new Error("its answer is not JSON");
    return body;
  }
}

/** Parses another process's answer; undefined if it is malformed. */
function readFacts(value: unknown): SessionFacts | undefined {
  const { command, groups } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return isTexts(command) && isTexts(groups) ? { command, groups } : undefined;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
