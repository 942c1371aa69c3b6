import type { CommandStatus } from "../../protocols/remotecommand/index.ts";

/**
 * Why a session that had been established did not end by itself. A closed list:
 * - "remote-failure": the server said that it failed (its Status is in `status`);
 * - "missing-status": the server ended the session without saying how, so nothing may be taken for a success;
 * - "connection-lost": the connection broke;
 * - "heartbeat-timeout": the server did not answer for as long as client-go waits;
 * - "protocol-error": the server broke the protocol;
 * - "stream-timeout": the server did not accept the streams of the session;
 * - "remote-closed": the far end of a forwarded connection takes no more, and what was written then has not arrived;
 * - "input-failed", "output-failed": the local stream that the session reads or writes failed;
 * - "aborted": the caller's signal.
 */
export type SessionErrorCode =
  | "remote-failure"
  | "missing-status"
  | "connection-lost"
  | "heartbeat-timeout"
  | "protocol-error"
  | "stream-timeout"
  | "remote-closed"
  | "input-failed"
  | "output-failed"
  | "aborted";

/** An exec, attach or port-forward failed after its upgrade. */
export class SessionError extends Error {
  override readonly name = "SessionError";
  readonly code: SessionErrorCode;
  readonly status: CommandStatus | undefined;

  constructor(
    code: SessionErrorCode,
    message: string,
    details: { readonly status?: CommandStatus | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.status = details.status;
  }
}
