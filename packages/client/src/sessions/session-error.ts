import type { CommandStatus } from "@sluice/protocols/remotecommand";

/** Why an established session failed. A closed list. */
export type SessionErrorCode =
  /** The server reported a failure (its Status is in `status`). */
  | "remote-failure"
  /** The server ended the session without a status, so it cannot count as a success. */
  | "missing-status"
  /** The connection broke. */
  | "connection-lost"
  /** The server did not answer for as long as client-go waits. */
  | "heartbeat-timeout"
  /** The server broke the protocol. */
  | "protocol-error"
  /** The server did not accept the session's streams. */
  | "stream-timeout"
  /** The pod reads no more from a forwarded connection, and later writes did not arrive. */
  | "remote-closed"
  /** The session's local input failed. */
  | "input-failed"
  /** The session's local output failed. */
  | "output-failed"
  /** The caller's signal fired. */
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
