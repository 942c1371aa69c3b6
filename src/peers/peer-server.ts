import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as HttpsServer } from "node:https";
import type { Duplex } from "node:stream";
import { checkServerIdentity, type TLSSocket } from "node:tls";
import { createHttp1Server } from "@sluice/client/internal/http/downstream/http1-server";
import { wholeBody } from "@sluice/client/internal/http/upstream/whole-body";
import { CertificateAuthority } from "../access/authn/certificate-authority.ts";
import type { AdminSession, SessionLists } from "../admin/admin-server.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { refuseUpgrade } from "../listeners/answer.ts";
import { peerCertificatesOf, rejudgePeer } from "../listeners/serving-certificate.ts";
import { type ServingTls, secureContextOf, serveAccepted, tlsOptionsOf } from "../listeners/serving-tls.ts";
import type { ResumableRunContext } from "../sessions/context.ts";
import { ownerServerBounds, takeFromReplica } from "../sessions/resumption/owner-server.ts";
import {
  type EndRequest,
  type EndResult,
  MAX_END_REQUEST_BYTES,
  readEndRequest,
} from "../sessions/session-actions.ts";
import {
  type JoinAnswer,
  type JoinRequest,
  MAX_JOIN_REQUEST_BYTES,
  readJoinRequest,
} from "../sessions/session-joins.ts";
import type { OutputAnswer, OutputRead } from "../sessions/session-outputs.ts";
import type { SessionFacts } from "../sessions/sessions.ts";
import {
  AFTER_HEADER,
  HELLO_PATH,
  helloOf,
  PEER_PAGE_SESSIONS,
  type PeerSessions,
  RECORDINGS_PATH,
  readOutputRead,
  SESSIONS_PATH,
  sessionIn,
  VIEWER_HEADER,
} from "./peer-protocol.ts";

/**
 * How long a list waits for the request for its next page. Past it that page comes from a new list.
 */
const KEPT_LIST_MS = 5_000;
/** A question about recordings, with selectors. Past it: 400. */
const MAX_RECORDINGS_QUESTION_BYTES = 64 * 1024;
/**
 * Lists that wait for their next page. Past it the oldest is dropped, and its next page comes from
 * a new one.
 */
const MAX_KEPT_LISTS = 8;

type Page = Pick<PeerSessions, "sessions" | "partial" | "next">;

interface Listed {
  /** The sessions after the last page, ordered by id. */
  readonly rest: readonly AdminSession[];
  readonly partial: SessionLists["partial"];
}

interface KeptList extends Listed {
  readonly timer: NodeJS.Timeout;
  readonly keptMs: number;
}

/**
 * A replica's sessions page by page, ordered by id, so that sessions that begin or end meanwhile do
 * not move others. A list is collected once, and its rest waits for the next request.
 */
export class SessionPages {
  readonly #collect: () => Promise<SessionLists>;
  readonly #nowMs: () => number;
  /** Keyed by the id after which the next page begins. */
  readonly #lists = new Map<string, KeptList>();

  constructor(collect: () => Promise<SessionLists>, nowMs: () => number = () => performance.now()) {
    this.#collect = collect;
    this.#nowMs = nowMs;
  }

  /** How many lists wait for their next page. */
  get kept(): number {
    return this.#lists.size;
  }

  /**
   * The page after this id, "" for the first. `next`: the id after which the following page begins.
   */
  async pageBehind(after: string): Promise<Page> {
    const { rest, partial } = this.#take(after) ?? behind(await this.#collect(), after);
    const sessions = rest.slice(0, PEER_PAGE_SESSIONS);
    const next = rest.length > sessions.length ? sessions.at(-1)?.id : undefined;
    if (next !== undefined) this.#keep(next, { rest: rest.slice(PEER_PAGE_SESSIONS), partial });
    return { sessions, partial, next };
  }

  clear(): void {
    for (const next of [...this.#lists.keys()]) this.#drop(next);
  }

  #take(after: string): Listed | undefined {
    const list = this.#lists.get(after);
    this.#drop(after);
    return list !== undefined && this.#nowMs() - list.keptMs < KEPT_LIST_MS ? list : undefined;
  }

  #keep(next: string, listed: Listed): void {
    this.#drop(next);
    const [oldest] = this.#lists.keys();
    if (this.#lists.size >= MAX_KEPT_LISTS && oldest !== undefined) this.#drop(oldest);
    const timer = setTimeout(() => this.#drop(next), KEPT_LIST_MS).unref();
    this.#lists.set(next, { ...listed, timer, keptMs: this.#nowMs() });
  }

  #drop(next: string): void {
    clearTimeout(this.#lists.get(next)?.timer);
    this.#lists.delete(next);
  }
}

function behind({ sessions, partial }: SessionLists, after: string): Listed {
  const rest = sessions.filter(({ id }) => id > after).sort((one, other) => (one.id < other.id ? -1 : 1));
  return { rest, partial };
}

export interface PeerServerParts {
  readonly tls: ServingTls;
  /** The name in every replica's certificate. */
  readonly name: string;
  /** This replica's id. */
  readonly replica: string;
  /** The sessions of this replica, in any of its processes. */
  readonly sessions: {
    listReplica(): Promise<SessionLists>;
    endInReplica(request: EndRequest): Promise<EndResult>;
    outputInReplica(read: OutputRead): Promise<OutputAnswer>;
    typeInReplica(request: JoinRequest): Promise<JoinAnswer>;
    factsInReplica(id: string): Promise<SessionFacts | undefined>;
  };
  /** Answers questions about this replica's recordings. Rejects for an invalid question. */
  answerRecordings(question: unknown): Promise<object>;
  readonly gateway: Pick<
    ResumableRunContext,
    "resumable" | "sessions" | "clock" | "limits" | "timeouts" | "logger"
  >;
}

/** Every release supports it. */
const MIN_VERSION = "TLSv1.3";

/**
 * Answers other replicas: this one's id, its sessions, and their resumption. A client without a
 * replica's certificate fails in its handshake. Not yet listening.
 */
export function createPeerServer(parts: PeerServerParts): Server {
  const { tls, name, gateway } = parts;
  const { limits, timeouts, logger } = gateway;
  const pages = new SessionPages(() => parts.sessions.listReplica());
  let relayed = 0;
  const onUpgrade = (request: IncomingMessage, socket: Duplex, early: Buffer): void => {
    if (relayed >= limits.maxPeerRelays) {
      const refusal = WIRE_ERRORS["relays-in"].streaming();
      refuseUpgrade(socket, refusal, { clock: gateway.clock, lingerTimes: timeouts });
      return;
    }
    relayed += 1;
    socket.once("close", () => {
      relayed -= 1;
    });
    void takeFromReplica(request, socket, early, gateway, { refuseUpgrade });
  };
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    answer(request, response, parts, pages).catch((error: unknown) => {
      logger.error({ error }, "a request of another replica failed");
      if (!response.headersSent) response.writeHead(500);
      response.end();
    });
  };
  const server = createHttp1Server(
    { ...ownerServerBounds(gateway), requestMs: timeouts.handshakeMs },
    { onRequest, onUpgrade },
    {
      tls: {
        ...tlsOptionsOf(tls, timeouts.handshakeMs),
        minVersion: MIN_VERSION,
        requestCert: true,
        rejectUnauthorized: true,
      },
    },
  );
  server.maxConnections = 2 * limits.maxPeers + limits.maxPeerRelays;
  const open = new Set<TLSSocket>();
  openConnections.set(server, open);
  // A request may arrive in the handshake's last flight, so HTTP gets the connection only after the
  // check.
  serveAccepted(server, (socket) => {
    if (checkServerIdentity(name, socket.getPeerCertificate()) === undefined) {
      open.add(socket);
      socket.once("close", () => open.delete(socket));
      return true;
    }
    logger.warn(
      { remoteAddress: socket.remoteAddress },
      "a connection has a certificate that does not belong to a replica",
    );
    return false;
  });
  return server;
}

/** Each server's connections with accepted certificates. */
const openConnections = new WeakMap<Server, Set<TLSSocket>>();

/**
 * Applies to new handshakes. Ends open connections whose certificate its authorities did not issue,
 * and the sessions that they relay.
 */
export function replacePeerTls(server: Server, tls: ServingTls): void {
  if (server instanceof HttpsServer)
    server.setSecureContext({ ...secureContextOf(tls), minVersion: MIN_VERSION });
  const authorities = tls.clientAuthorities.map((pem) => new CertificateAuthority(pem));
  for (const socket of openConnections.get(server) ?? []) {
    rejudgePeer(socket, authorities);
    if (peerCertificatesOf(socket)?.isVerified !== true) socket.destroy();
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { replica, sessions, answerRecordings }: PeerServerParts,
  pages: SessionPages,
): Promise<void> {
  const { method, url = "", headers } = request;
  const hello = helloOf(replica);
  if (method === "GET" && url === HELLO_PATH) return sendJson(response, hello);
  if (method === "GET" && url === SESSIONS_PATH) {
    const after = headers[AFTER_HEADER.toLowerCase()];
    // Older releases do not request pages.
    const page = after === undefined ? await sessions.listReplica() : await pages.pageBehind(String(after));
    return sendJson(response, { ...hello, ...page });
  }
  const asked = method === "GET" ? sessionIn(url, "facts") : undefined;
  if (asked !== undefined)
    return sendJson(response, { ...hello, facts: await sessions.factsInReplica(asked) });
  const viewed = method === "GET" ? sessionIn(url, "output") : undefined;
  if (viewed !== undefined) {
    const [viewer, after] = [headers[VIEWER_HEADER.toLowerCase()], headers[AFTER_HEADER.toLowerCase()]];
    const read = readOutputRead(viewed, viewer, after);
    if (read === undefined) return void response.writeHead(400).end();
    return sendJson(response, { ...hello, output: await sessions.outputInReplica(read) });
  }
  const joined = method === "POST" ? sessionIn(url, "input") : undefined;
  if (joined !== undefined) {
    const typing = await requestIn(request, response, MAX_JOIN_REQUEST_BYTES, (text) =>
      readJoinRequest(joined, text),
    );
    if (typing !== undefined) sendJson(response, { ...hello, typed: await sessions.typeInReplica(typing) });
    return;
  }
  if (method === "POST" && url === RECORDINGS_PATH) {
    const question = await requestIn(request, response, MAX_RECORDINGS_QUESTION_BYTES, (text) =>
      JSON.parse(text),
    );
    if (question !== undefined) sendJson(response, { ...hello, answer: await answerRecordings(question) });
    return;
  }
  const ended = method === "POST" ? sessionIn(url, "end") : undefined;
  if (ended === undefined) return void response.writeHead(404).end();
  const ending = await requestIn(request, response, MAX_END_REQUEST_BYTES, (text) =>
    readEndRequest(ended, text),
  );
  if (ending !== undefined) sendJson(response, { ...hello, result: await sessions.endInReplica(ending) });
}

/** The body, parsed by `read`. Undefined if it is invalid: then the refusal has been sent. */
async function requestIn<T>(
  request: IncomingMessage,
  response: ServerResponse,
  maxBytes: number,
  read: (text: string) => T,
): Promise<T | undefined> {
  try {
    return read(String(await wholeBody(request, maxBytes)));
  } catch {
    response.writeHead(400, { Connection: "close" }).end();
    return undefined;
  }
}

function sendJson(response: ServerResponse, value: object): void {
  const body = JSON.stringify(value);
  response.writeHead(200, {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
  });
  response.end(body);
}
