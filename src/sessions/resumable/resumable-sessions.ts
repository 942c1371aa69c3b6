import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import type { StatusError } from "@sluice/client/internal/api/status";
import {
  type HeaderList,
  headerValue,
  listElements,
  withHeader,
} from "@sluice/client/internal/http/header-list";
import type { LingerTimes } from "@sluice/client/internal/net/linger";
import type { SessionClock } from "@sluice/client/internal/net/session-clock";
import type { UpgradedConnection } from "@sluice/client/internal/net/upgraded-connection";
import { ResumableSocket } from "@sluice/client/internal/sessions/resumable-socket";
import { isProven, RESUME_HEARTBEAT } from "@sluice/client/internal/sessions/resuming-client";
import { NOTHING } from "@sluice/protocols/bytes";
import {
  encodeAgreement,
  parseRequest,
  RESUME_HEADER,
  RESUME_PROTOCOL,
  type Resumption,
} from "@sluice/protocols/resume";
import type { UserInfo } from "../../access/user-info.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { Logger } from "../../observability/logger.ts";
import type { ResumableCounts, ResumptionMetrics } from "../../observability/resumption-metrics.ts";
import type { Admission } from "../leg.ts";
import type { SessionOwner } from "./session-owner.ts";

/**
 * Wrong proofs of a resumption in a row. Past it attempts get 429, the owner's included, until 10 s
 * after the last; the session continues.
 */
const MAX_WRONG_PROOFS = 8;
/** The length of that pause, counted from the last wrong proof. */
const WRONG_PROOF_PAUSE_MS = 10_000;

interface ResumableSessionsOptions {
  readonly settings: GatewayConfiguration["resumption"];
  readonly clock: SessionClock;
  readonly lingerTimes: LingerTimes;
  readonly metrics: ResumptionMetrics;
  readonly logger: Logger;
  /** This process among the gateway's processes; absent: it is the only one. */
  readonly owner?: SessionOwner | undefined;
  readonly heartbeat?: { readonly pingIntervalMs: number; readonly silenceMs: number } | undefined;
}

/** Repeats decisions from the session's start that may differ for its user by now. Throws StatusError. */
type Reauthorize = (user: UserInfo) => void;

/** A resumable session, with the user and the key that a resumption must match. */
interface HeldSession {
  readonly owner: UserInfo;
  /** The path at which it was opened. */
  readonly path: string;
  readonly reauthorize: Reauthorize;
  readonly key: string;
  readonly socket: ResumableSocket;
  lastAttempt: number;
  wrongProofs: number;
  lastWrongMs: number;
}

/** The server's agreement to make a session resumable. */
interface AgreedResumption {
  /** The headers of the 101, including the agreement. */
  readonly headers: HeaderList;
  /** Call once that 101 has been written. The result replaces the connection. */
  start(downstream: UpgradedConnection): UpgradedConnection;
}

/**
 * This process's resumable sessions. Limits their number and their buffers, which are reserved when a
 * session begins; beyond the limits a session is served without resumption.
 */
export class ResumableSessions {
  readonly #options: ResumableSessionsOptions;
  /** True when clients that reconnect reach another process, which proxies them to this one. */
  returnsElsewhere = false;
  readonly #held = new Map<string, HeldSession>();
  /** Sessions with nodes, in which the gateway is the client; undefined until the node has answered. */
  readonly #upstream = new Map<object, ResumableSocket | undefined>();

  constructor(options: ResumableSessionsOptions) {
    this.#options = options;
    options.metrics.observe(() => this.counts);
  }

  /** This process, as its sessions' names encode it; undefined: it is the only one. */
  get owner(): SessionOwner | undefined {
    return this.#options.owner;
  }

  /** Bytes that a session may buffer in each direction. */
  get windowBytes(): number {
    return this.#options.settings.windowBytes;
  }

  get counts(): ResumableCounts {
    const sockets = Array.from(this.#held.values(), ({ socket }) => socket);
    const away = sockets.filter((socket) => socket.isAway).length;
    const upstream = [...this.#upstream.values()].filter((socket) => socket !== undefined);
    const heldBytes = [...sockets, ...upstream].reduce((sum, socket) => sum + socket.heldBytes, 0);
    return { attached: sockets.length - away, away, upstream: upstream.length, heldBytes };
  }

  /**
   * Agrees if the client offered resumption and there is room; undefined: the session is not resumable.
   * `answer`: the plain 101. `reauthorize`: called at each resumption.
   */
  agree(
    { user, request }: Pick<Admission, "user" | "request">,
    answer: HeaderList,
    reauthorize: Reauthorize = () => {},
  ): AgreedResumption | undefined {
    const { offer, headers } = request;
    const asked = parseRequest(headerValue(headers, RESUME_HEADER) ?? "");
    if (asked?.type !== "offer" || offer.transport !== "websocket") return undefined;
    if (!offer.protocols.includes(RESUME_PROTOCOL)) return undefined;
    const { settings, metrics } = this.#options;
    const windowBytes = Math.min(settings.windowBytes, asked.windowBytes);
    const protocol = headerValue(answer, "Sec-WebSocket-Protocol")?.trim() ?? "";
    // A tiny window would limit the session to that many bytes for each round trip.
    const isSensible = windowBytes >= MIN_WINDOW_BYTES && protocol !== "";
    if (!isSensible || !this.#hasRoom()) {
      metrics.offered(isSensible ? "no-room" : "not-sensible");
      return undefined;
    }
    metrics.offered("agreed");
    const session = this.owner?.newSession() ?? randomBytes(16).toString("base64url");
    const key = randomBytes(32).toString("base64url");
    const windowSeconds = settings.windowMs / 1_000;
    const value = encodeAgreement({ protocol, session, key, windowBytes, windowSeconds });
    return {
      headers: [...withHeader(answer, "Sec-WebSocket-Protocol", RESUME_PROTOCOL), [RESUME_HEADER, value]],
      start: (downstream) =>
        this.#start(session, { owner: user, path: request.path, reauthorize, key }, windowBytes, downstream),
    };
  }

  /**
   * Finds the session to resume. Throws StatusError and leaves the session unchanged: 410 unknown; 403
   * other user or path, wrong or reused proof, policy; 429 too many wrong proofs; 409 missing bytes.
   */
  claim(resumption: Resumption, user: UserInfo, path: string): ResumableSocket {
    try {
      const { socket, reauthorize } = this.#proven(resumption, user, path);
      if (!socket.canAttach(resumption.received)) {
        throw new Refusal("offset", WIRE_ERRORS["resumption-gap"].streaming());
      }
      reauthorize(user);
      return socket;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw this.#refused(error, user, path);
    }
  }

  /** The refusal of a resumption if no process owns its session. */
  unknown(user: UserInfo, path: string): StatusError {
    return this.#refused(unknownSession(), user, path);
  }

  resumed(user: UserInfo, path: string): void {
    this.#options.metrics.resumption("resumed");
    this.#options.logger.info({ user: user.name, path }, "a session goes on over a new connection");
  }

  /**
   * Reserves room for a session with a node that may agree to resumption; undefined if there is none.
   * Call the result with the session's socket, or without one to release the room.
   */
  admitUpstream(): ((socket?: Duplex) => void) | undefined {
    if (!this.#hasRoom()) return undefined;
    const place = {};
    this.#upstream.set(place, undefined);
    return (socket) => {
      if (!(socket instanceof ResumableSocket) || socket.closed) {
        this.#upstream.delete(place);
        return;
      }
      this.#upstream.set(place, socket);
      socket.once("close", () => this.#upstream.delete(place));
    };
  }

  /** A session with a node lost its connection ("lost") or has a new one ("resumed"). */
  upstreamChanged(event: "lost" | "resumed"): void {
    this.#options.metrics.upstream(event);
  }

  /** Ends the sessions that wait for a connection, since none will be accepted any more. */
  expireDetached(message: string): void {
    for (const { socket } of [...this.#held.values()]) if (socket.isAway) socket.expire(message);
  }

  #hasRoom(): boolean {
    const { maxSessions, maxTotalBytes, windowBytes } = this.#options.settings;
    const next = this.#held.size + this.#upstream.size + 1;
    return next <= maxSessions && next * 2 * windowBytes <= maxTotalBytes;
  }

  #refused({ result, status }: Refusal, user: UserInfo, path: string): StatusError {
    this.#options.metrics.resumption(result);
    this.#options.logger.warn({ user: user.name, path, cause: result }, "a resumption was refused");
    return status;
  }

  #start(
    session: string,
    agreed: Pick<HeldSession, "owner" | "path" | "reauthorize" | "key">,
    windowBytes: number,
    leg: UpgradedConnection,
  ): UpgradedConnection {
    const { settings, clock, lingerTimes, metrics, logger, heartbeat = RESUME_HEARTBEAT } = this.#options;
    const socket = new ResumableSocket({
      role: "server",
      clock,
      lingerTimes,
      ...heartbeat,
      windowBytes,
      windowMs: settings.windowMs,
      onDetached: (reason) => {
        const { owner, path } = agreed;
        logger.info({ user: owner.name, path, reason }, "a session waits for its next connection");
      },
      onOver: (end) => {
        this.#held.delete(session);
        metrics.ended(end);
      },
    });
    this.#held.set(session, { ...agreed, socket, lastAttempt: 0, wrongProofs: 0, lastWrongMs: 0 });
    socket.attach(leg, 0);
    return { socket, head: NOTHING };
  }

  #proven(resumption: Resumption, user: UserInfo, path: string): HeldSession {
    const held = this.#held.get(resumption.session);
    if (held === undefined) throw unknownSession();
    const { owner } = held;
    if (owner.name !== user.name || owner.uid !== user.uid) throw refused("identity", "it is another user's");
    if (held.path !== path) throw refused("path", "it was opened at another path");
    const nowMs = this.#options.clock.now();
    if (held.wrongProofs >= MAX_WRONG_PROOFS && nowMs - held.lastWrongMs < WRONG_PROOF_PAUSE_MS) {
      const seconds = WRONG_PROOF_PAUSE_MS / 1_000;
      throw new Refusal("tries", WIRE_ERRORS["resumption-tries"].streaming({ seconds }));
    }
    if (resumption.attempt <= held.lastAttempt || !isProven(held.key, resumption)) {
      held.wrongProofs += 1;
      held.lastWrongMs = nowMs;
      throw refused("proof", "the proof is wrong, or was used before");
    }
    held.lastAttempt = resumption.attempt;
    held.wrongProofs = 0;
    return held;
  }
}

const MIN_WINDOW_BYTES = 4 * 1024;

/** Why a resumption was refused. A closed list: it is a metric label. */
type RefusedResult = "unknown" | "identity" | "path" | "tries" | "proof" | "offset";

class Refusal extends Error {
  readonly result: RefusedResult;
  readonly status: StatusError;

  constructor(result: RefusedResult, status: StatusError) {
    super(status.message);
    this.result = result;
    this.status = status;
  }
}

function unknownSession(): Refusal {
  return new Refusal("unknown", WIRE_ERRORS["resumption-unknown"].streaming());
}

function refused(result: RefusedResult, reason: string): Refusal {
  return new Refusal(result, WIRE_ERRORS["resumption-refused"].streaming({ why: reason }));
}

/** The resumption that a request asks for; undefined if it asks for a new session. */
export function resumptionIn(headers: HeaderList): Resumption | undefined {
  const asked = parseRequest(headerValue(headers, RESUME_HEADER) ?? "");
  if (asked?.type !== "resumption") return undefined;
  const offered = listElements([headerValue(headers, "Sec-WebSocket-Protocol") ?? ""]);
  return offered.includes(RESUME_PROTOCOL) ? asked : undefined;
}
