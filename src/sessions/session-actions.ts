import { type CommandStatus, decodeStatus } from "@sluice/protocols/remotecommand";
import { findSession, type Sessions } from "./sessions.ts";

/** A moderator's request to end a running session, wherever it runs. */
export interface EndRequest {
  readonly id: string;
  /** For the log; names the moderator and the reason. */
  readonly message: string;
  /** For the session's client; absent: an InternalError with the message. */
  readonly status?: CommandStatus | undefined;
}

/**
 * `ended`: the session is over. `ending`: it was cut, but was not over in time. `unknown`: no such
 * session runs. `unreachable`: its process did not answer.
 */
const END_RESULTS = ["ended", "ending", "unknown", "unreachable"] as const;
export type EndResult = (typeof END_RESULTS)[number];

/** How long a session may take to end at a message boundary. Past it the answer is `ending`. */
export const MAX_END_MS = 3_000;
/**
 * How much longer to wait for each process on the way to the session's. Past it the answer is
 * `unreachable`.
 */
export const END_HOP_MS = 1_000;
/** A request to end a session by its id. Past it: 400. */
export const MAX_END_REQUEST_BYTES: number = 16 * 1024;

/** Ends the session if one of these registries has it; resolves with `unknown` if none does. */
export async function endSession(
  registries: readonly Pick<Sessions, "find">[],
  { id, message, status }: EndRequest,
): Promise<EndResult> {
  const session = findSession(registries, id);
  if (session === undefined) return "unknown";
  if (session.isOver) return "ended";
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      stop();
      resolve("ending");
    }, MAX_END_MS);
    const onEnd = (): void => {
      clearTimeout(timer);
      resolve("ended");
    };
    const stop = session.observe({ isRequired: false, onEnd });
    session.cut("moderator", message, status);
  });
}

/**
 * Parses another replica's request. Throws Error if it is malformed, or if its Status is not a
 * failure: only a node reports success.
 */
export function readEndRequest(id: string, text: string): EndRequest {
  const { message, status }: Record<string, unknown> = { ...JSON.parse(text) };
  if (typeof message !== "string") throw new TypeError("the request has no message");
  if (status === undefined) return { id, message };
  const read = decodeStatus(Buffer.from(JSON.stringify(status)));
  if (read?.status !== "Failure") throw new TypeError("its status is not a failure");
  return { id, message, status: read };
}

/** Throws TypeError for any other value. */
export function readEndResult(value: unknown): EndResult {
  const result = END_RESULTS.find((each) => each === value);
  if (result === undefined) throw new TypeError("the answer is not a result");
  return result;
}
