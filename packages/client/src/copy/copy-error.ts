import { setTimeout as delay } from "node:timers/promises";
import { systemErrorText } from "../config/system-error.ts";
import { ConnectError } from "../http/upstream/connect-error.ts";
import { SessionError } from "../sessions/session-error.ts";

/** Why a copy failed. */
export type CopyErrorCode =
  /** The paths do not fit together, or one is missing. */
  | "usage"
  /** A file or folder on this machine cannot be read or written. */
  | "local"
  /** A program in the container failed, or is missing. */
  | "remote"
  /** The source shrank or was overwritten while it was copied. */
  | "changed"
  /** Size or SHA-256 differs at the end. */
  | "mismatch"
  /** A name or link leads outside the destination. */
  | "unsafe";

/** A copy failed for another reason than its connection. */
export class CopyError extends Error {
  override readonly name = "CopyError";
  readonly code: CopyErrorCode;

  constructor(code: CopyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A failure of this machine's files. */
export function localError(error: unknown): CopyError {
  return new CopyError("local", systemErrorText(error), { cause: error });
}

/** An error of ours or of the file system. */
export function isOwn(error: Error): boolean {
  return error instanceof CopyError || "syscall" in error || "code" in error;
}

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;

interface RetryOptions {
  /** How many attempts in a row may make no progress. */
  readonly retries: number;
  /** Bytes that are safe by now. An attempt that adds to them resets the count. */
  readonly progress: () => number;
  readonly note: (text: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Retries after lost connections while attempts make progress. Throws the last attempt's error. */
export async function withRetries<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  let fruitless = 0;
  for (;;) {
    const before = options.progress();
    try {
      return await attempt();
    } catch (error) {
      fruitless = options.progress() > before ? 0 : fruitless + 1;
      if (!isInterruption(error) || fruitless > options.retries) throw error;
      options.note(
        `the connection was lost, going on at byte ${options.progress()}: ${(error as Error).message}`,
      );
      const { signal } = options;
      // An aborted delay ends at once; the next attempt fails with "aborted".
      if (fruitless > 0)
        await delay(Math.min(FIRST_DELAY_MS * 2 ** fruitless, MAX_DELAY_MS), undefined, { signal }).catch(
          () => {},
        );
    }
  }
}

/** The connection failed, not the command or anything local. */
export function isInterruption(error: unknown): boolean {
  if (error instanceof ConnectError) {
    if (error.httpStatus !== undefined) return error.httpStatus >= 500 || error.httpStatus === 429;
    return ["tcp", "tls", "proxy", "response"].includes(error.leg);
  }
  if (!(error instanceof SessionError)) return false;
  if (["connection-lost", "missing-status", "heartbeat-timeout"].includes(error.code)) return true;
  // A gateway reports a lost node like any failure of its own.
  return (
    error.code === "remote-failure" &&
    error.status?.reason === "InternalError" &&
    /without a status|connection|node/i.test(error.message)
  );
}
