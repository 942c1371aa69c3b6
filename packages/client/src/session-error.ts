import type { CommandStatus } from "@sluice/protocols/remotecommand";

/**
 * Why an established session failed. A closed list:
 * - "remote-failure": the server reported a failure (its Status is in `status`);
 * - "missing-status": the server ended the session without a status, so it cannot count as a success;
 * - "connection-lost": the connection broke;
 * - "heartbeat-timeout": the server did not answer for as long as client-go waits;
 * - "protocol-error": the server broke the protocol;
 * - "stream-timeout": the server did not accept the session's streams;
 * - "remote-closed": the pod reads no more from a forwarded connection, and later writes did not arrive;
 * - "input-failed", "output-failed": the session's local input or output failed;
 * - "aborted": the caller's signal fired.
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
