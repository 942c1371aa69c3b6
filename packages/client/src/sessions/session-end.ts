import { type CommandStatus, internalErrorStatus } from "@sluice/protocols/remotecommand";
import { CLOSE } from "@sluice/protocols/websocket";

/** The side that ended a session. A closed list: it is a metric label. */
type EndedBy = "client" | "node" | "gateway";

/** Why a session ended. A closed list: it is a metric label. docs/metrics.md explains each cause. */
type SessionEndCause =
  | "completed" // the node reported the result (exit code 0 or not) or closed properly, and the client got all of it
  | "client-gone" // the client closed or broke the connection first, or did not take its remaining output
  | "upstream-lost" // the node's connection ended without a result
  | "upstream-failed" // the node reported a failure of its own
  | "protocol-error" // one side broke its protocol
  | "stream-creation-timeout"
  | "idle"
  | "refused" // policy forbids what the client requested within the session
  | "time-limit" // policy's maxDuration
  | "moderator" // a person with the right to do so ended it
  | "recording-failed" // the recording that its rule requires cannot be written
  | "authorization-revoked" // its user's credentials expired, or no longer permit it
  | "internal-error" // an exception in this process
  | "shutdown";

/** The causes with which the session's owner may end it. */
export type CauseOfOurs = Extract<
  SessionEndCause,
  | "idle"
  | "time-limit"
  | "moderator"
  | "recording-failed"
  | "authorization-revoked"
  | "internal-error"
  | "shutdown"
>;

/** How a session ended. */
export interface SessionEnd {
  readonly endedBy: EndedBy;
  readonly cause: SessionEndCause;
  /** The HTTP-like code that Kubernetes' metrics use as a label: 200, or the code of the final Status. */
  readonly code: number;
  /** For the log: which leg ended the session, and how. Contains no payload. */
  readonly message: string;
  /** The Status for the client; absent: an InternalError with the message. */
  readonly status?: CommandStatus | undefined;
}

/** Causes that either side can have; every other cause belongs to one side. */
type CauseOfEitherSide = "protocol-error" | "stream-creation-timeout";

const ENDED_BY: Readonly<Record<Exclude<SessionEndCause, CauseOfEitherSide>, EndedBy>> = {
  completed: "node",
  "client-gone": "client",
  "upstream-lost": "node",
  "upstream-failed": "node",
  idle: "gateway",
  refused: "gateway",
  "time-limit": "gateway",
  moderator: "gateway",
  "recording-failed": "gateway",
  "authorization-revoked": "gateway",
  "internal-error": "gateway",
  shutdown: "gateway",
};

/** An end whose cause belongs to one side. `status`: see SessionEnd. */
export function endOf(cause: keyof typeof ENDED_BY, message: string, status?: CommandStatus): SessionEnd {
  const code = status?.code ?? (cause === "completed" || cause === "client-gone" ? 200 : 500);
  return { endedBy: ENDED_BY[cause], cause, code, message, status };
}

/** The Status that reports this end to the client. `message`: for an end that brings no Status. */
export function statusOf({ status, message: ended }: SessionEnd, message: string = ended): CommandStatus {
  return status ?? internalErrorStatus(message);
}

/** The same for a protocol without Status: its text. */
export function reasonOf({ status, message: ended }: SessionEnd, message: string = ended): string {
  return status?.message ?? message;
}

/** The WebSocket close code for a protocol without Status. */
export function closeCodeFor({ cause }: Pick<SessionEnd, "cause">): number {
  return CLOSE_CODES[cause] ?? CLOSE.GOING_AWAY;
}

const CLOSE_CODES: Readonly<Partial<Record<SessionEndCause, number>>> = {
  refused: CLOSE.POLICY_VIOLATION,
  "protocol-error": CLOSE.POLICY_VIOLATION,
  moderator: CLOSE.POLICY_VIOLATION,
  "authorization-revoked": CLOSE.POLICY_VIOLATION,
  "upstream-lost": CLOSE.INTERNAL_ERROR,
  "upstream-failed": CLOSE.INTERNAL_ERROR,
  "recording-failed": CLOSE.INTERNAL_ERROR,
  "internal-error": CLOSE.INTERNAL_ERROR,
};

/** An end by a fault of either side. */
export function faultOf(endedBy: "client" | "node", cause: CauseOfEitherSide, message: string): SessionEnd {
  return { endedBy, cause, code: 500, message };
}
