import { createHmac, timingSafeEqual } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  type Agreement,
  encodeOffer,
  encodeResumption,
  parseAgreement,
  parseResumed,
  proofTextOf,
  RESUME_HEADER,
  type Resumption,
} from "@sluice/protocols/resume";
import { type HeaderLine, type HeaderList, headerValue } from "../http/header-list.ts";
import type { SessionClock } from "../net/session-clock.ts";
import type { UpgradedConnection } from "../net/upgraded-connection.ts";
import { ResumableSocket } from "./resumable-socket.ts";

/**
 * Unacknowledged bytes of a resumable session in each direction, or fewer if the server says so.
 * Past it input waits.
 */
const OFFERED_WINDOW_BYTES: number = 1024 * 1024;
/** Upper limit for the window that a server may set. */
const MAX_WINDOW_SECONDS = 24 * 3_600;
const LINGER_TIMES = { lingerIdleMs: 1_000, lingerMaxMs: 5_000 };
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
/**
 * How long to retry while a server accepts connections and breaks each off, as after its process died
 * with the session. Past it: "connection-lost".
 */
const BROKEN_OFF_MS = 10_000;

/** Both sides PING this often and drop a connection after this much silence, in milliseconds. */
export const RESUME_HEARTBEAT = { pingIntervalMs: 5_000, silenceMs: 15_000 } as const;

/** The answer to a WebSocket upgrade. */
export interface AnsweredUpgrade extends UpgradedConnection {
  readonly responseHeaders: HeaderList;
}

interface ResumingClientOptions {
  readonly clock: SessionClock;
  /** Repeats the upgrade with this header, and with `RESUME_PROTOCOL` as the only subprotocol. */
  redial(line: HeaderLine, signal: AbortSignal): Promise<AnsweredUpgrade>;
  /** True if another attempt would not help after this error. */
  isFinal(error: unknown): boolean;
  /** True if the server, or a hop before it, accepted the connection and ended it without an answer. */
  isBrokenOff?(error: unknown): boolean;
  /** Called with notes for the user. */
  note?(text: string): void;
  /** The same events, for counters. */
  onChange?(event: "lost" | "resumed"): void;
  readonly heartbeat?: { readonly pingIntervalMs: number; readonly silenceMs: number } | undefined;
}

/** The header that offers resumption to a server. */
export function offerLine(windowBytes: number = OFFERED_WINDOW_BYTES): HeaderLine {
  return [RESUME_HEADER, encodeOffer({ windowBytes })];
}

/**
 * Answers to a resumption that a retry will not change: the session is gone, belongs to another user,
 * or the request is not understood.
 */
const FINAL_STATUSES: readonly number[] = [400, 403, 405, 409, 410];

export function isFinalStatus(status: number): boolean {
  return FINAL_STATUSES.includes(status);
}

/** A reset connection, as opposed to a refused one, whose message says "refused". */
export function isReset({ message }: Error): boolean {
  return message.endsWith("connection reset by peer");
}

/** The server's agreement; undefined if it is invalid or exceeds the offer. */
export function agreementOf(
  responseHeaders: HeaderList,
  offeredProtocols: readonly string[],
  offeredWindowBytes: number = OFFERED_WINDOW_BYTES,
): Agreement | undefined {
  const agreement = parseAgreement(headerValue(responseHeaders, RESUME_HEADER) ?? "");
  if (agreement === undefined || !offeredProtocols.includes(agreement.protocol)) return undefined;
  const { windowBytes, windowSeconds } = agreement;
  const isFit = windowBytes >= 1 && windowBytes <= offeredWindowBytes && windowSeconds <= MAX_WINDOW_SECONDS;
  return isFit ? agreement : undefined;
}

/**
 * The client's end of a resumable session: a socket that lasts until the server releases the session.
 * It resumes with one subprotocol that no other server accepts, so that none starts a second command.
 */
export function resumingSocket(
  first: UpgradedConnection,
  agreement: Agreement,
  options: ResumingClientOptions,
): ResumableSocket {
  const { clock, heartbeat = RESUME_HEARTBEAT, note = () => {} } = options;
  const ended = new AbortController();
  const socket = new ResumableSocket({
    role: "client",
    clock,
    lingerTimes: LINGER_TIMES,
    ...heartbeat,
    windowBytes: agreement.windowBytes,
    windowMs: agreement.windowSeconds * 1_000,
    onDetached: (reason) => {
      options.onChange?.("lost");
      note(`connection lost (${reason}), resuming the session`);
      void resume(socket, reason);
    },
    onOver: () => ended.abort(),
  });
  let attempt = 0;
  let isResuming = false;
  const pause = new PauseAfterLoss();

  const tryOnce = async (): Promise<void> => {
    attempt += 1;
    const { session, key } = agreement;
    const claim = { session, attempt, received: socket.received };
    const value = encodeResumption({ ...claim, proof: proofOf(key, claim) });
    const answered = await options.redial([RESUME_HEADER, value], ended.signal);
    const received = parseResumed(headerValue(answered.responseHeaders, RESUME_HEADER) ?? "");
    if (received === undefined || !socket.canAttach(received)) {
      answered.socket.destroy();
      throw new ResumptionError("the server's answer does not fit the session");
    }
    socket.attach(answered, received);
    options.onChange?.("resumed");
    note("session resumed");
  };

  async function resume(lost: ResumableSocket, reason: string): Promise<void> {
    if (isResuming) return;
    isResuming = true;
    let delayMs = pause.nextMs(lost.progress);
    let brokenOffSinceMs: number | undefined;
    while (lost.isAway && !lost.isUnreferenced) {
      try {
        if (delayMs > 0)
          await delay(delayMs * (0.5 + Math.random() / 2), undefined, { signal: ended.signal });
        await tryOnce();
        if (lost.isAway) delayMs = pause.nextMs(lost.progress);
      } catch (error) {
        if (!lost.isAway) break;
        const message = error instanceof Error ? error.message : String(error);
        note(`the session is not resumed yet: ${message}`);
        if (error instanceof ResumptionError || options.isFinal(error)) {
          lost.expire(`${reason}; the session could not be resumed: ${message}`);
        }
        brokenOffSinceMs =
          options.isBrokenOff?.(error) === true ? (brokenOffSinceMs ?? clock.now()) : undefined;
        if (brokenOffSinceMs !== undefined && clock.now() - brokenOffSinceMs >= BROKEN_OFF_MS) {
          lost.expire(
            `${reason}; the session could not be resumed: for ${BROKEN_OFF_MS / 1_000} s connections were accepted and broken off (${message}), so the process that held the session is gone`,
          );
        }
        delayMs = longerDelay(delayMs);
      }
    }
    isResuming = false;
  }

  socket.attach(first, 0);
  return socket;
}

/** A hop may cut each connection at once: without a pause that is hundreds of resumptions a second. */
class PauseAfterLoss {
  #progress = -1;
  #ms = 0;

  /** The pause after a lost connection; none if the session went on meanwhile. */
  nextMs(progress: number): number {
    this.#ms = progress > this.#progress ? 0 : longerDelay(this.#ms);
    this.#progress = progress;
    return this.#ms;
  }
}

function longerDelay(delayMs: number): number {
  return Math.min(MAX_DELAY_MS, Math.max(FIRST_DELAY_MS, delayMs * 2));
}

/** The server agreed to resume, but its answer contradicts this side's state. */
class ResumptionError extends Error {
  override readonly name = "ResumptionError";
}

/** Proves that the client has the session's key. Valid for one attempt. */
export function proofOf(key: string, resumption: Omit<Resumption, "proof">): string {
  return createHmac("sha256", Buffer.from(key, "base64url"))
    .update(proofTextOf(resumption))
    .digest("base64url");
}

/** Compares in constant time. */
export function isProven(key: string, resumption: Resumption): boolean {
  const expected = Buffer.from(proofOf(key, resumption));
  const given = Buffer.from(resumption.proof);
  return expected.byteLength === given.byteLength && timingSafeEqual(expected, given);
}
