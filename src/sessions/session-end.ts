/** The side that ended a session. A closed list: it is a metric label. */
export type EndedBy = "client" | "node" | "gateway";

/** Why a session ended. A closed list: it is a metric label; docs/metrics.md says what each means. */
export type SessionEndCause =
  | "completed" // the node said how it ended (exit code 0 or not), or closed properly, and the client got all of it
  | "client-gone" // the client closed or broke the connection first, or did not take what was left for it
  | "upstream-lost" // the node ended without saying how
  | "upstream-failed" // the node reported a failure of its own
  | "protocol-error" // one side broke its protocol
  | "stream-creation-timeout"
  | "idle"
  | "refused" // policy forbids what the client asked for inside of the session
  | "time-limit" // policy's maxDuration
  | "internal-error" // an exception in this process
  | "shutdown";

/** The causes that the owner of a session ends it for. */
export type CauseOfOurs = Extract<SessionEndCause, "idle" | "time-limit" | "internal-error" | "shutdown">;

/** How a session ended. */
export interface SessionEnd {
  readonly endedBy: EndedBy;
  readonly cause: SessionEndCause;
  /** The HTTP-like code that Kubernetes' metrics label a request with: 200, or that of the Status at the end. */
  readonly code: number;
  /** For the log: which leg ended it and how. Holds no payload. */
  readonly message: string;
}

/** Either side breaks its protocol, or opens its streams late; every other cause has one side. */
type CauseOfEitherSide = "protocol-error" | "stream-creation-timeout";

const ENDED_BY: Readonly<Record<Exclude<SessionEndCause, CauseOfEitherSide>, EndedBy>> = {
  completed: "node",
  "client-gone": "client",
  "upstream-lost": "node",
  "upstream-failed": "node",
  idle: "gateway",
  refused: "gateway",
  "time-limit": "gateway",
  "internal-error": "gateway",
  shutdown: "gateway",
};

/** The end by a cause that has one side. */
export function endOf(cause: keyof typeof ENDED_BY, message: string): SessionEnd {
  const code = cause === "completed" || cause === "client-gone" ? 200 : 500;
  return { endedBy: ENDED_BY[cause], cause, code, message };
}

/** The end by a fault of either side. */
export function faultOf(endedBy: "client" | "node", cause: CauseOfEitherSide, message: string): SessionEnd {
  return { endedBy, cause, code: 500, message };
}
