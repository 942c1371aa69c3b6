import type { CauseOfOurs, SessionEnd } from "@sluice/client/internal/sessions/session-end";
import type { CommandStatus } from "@sluice/protocols/remotecommand";
import type { SessionReport } from "../session.ts";
import type { SessionInfo } from "../session-info.ts";

export type Side = "client" | "node";

/** A session's stream, named by its meaning. Over WebSocket it is a channel. */
export interface SessionStream {
  readonly type: "stdin" | "stdout" | "stderr" | "resize" | "data" | "error";
  /** For port-forwards: the stream's connection, and the port as the client wrote it. */
  readonly connection?: string | undefined;
  readonly port?: string | undefined;
  /** For stdin: the joiner that typed it; absent: the session's own client. */
  readonly by?: string | undefined;
}

/** An observer's view of its session. */
export interface ObservedSession {
  /**
   * Absent for a forwarded upgrade that is not an exec, attach or port-forward: it ends with the others,
   * and no list shows it.
   */
  readonly info?: SessionInfo | undefined;
  /**
   * Ends the session. Its client gets `status`, or an InternalError with the message, in its own
   * protocol; the log has the message.
   */
  cut(cause: CauseOfOurs, message: string, status?: CommandStatus): void;
  /**
   * Stops reading this side until the returned function is called. Several holds add up; the idle
   * time keeps running.
   */
  hold(side: Side): () => void;
}

/** The payload that an observer's `onData` gets. */
export interface ObservedPayload {
  readonly node?: boolean | undefined;
  /** What the client sends: stdin, or a port-forward's data. */
  readonly input?: boolean | undefined;
  /** The sizes of a terminal. */
  readonly sizes?: boolean | undefined;
}

export const STDIN: SessionStream = { type: "stdin" };
export const STDOUT: SessionStream = { type: "stdout" };
export const STDERR: SessionStream = { type: "stderr" };
export const RESIZE: SessionStream = { type: "resize" };

/** A legacy port-forward's streams, indexed by channel. */
export function legacyStreams(ports: readonly number[]): readonly SessionStream[] {
  return ports.flatMap((port, index) =>
    (["data", "error"] as const).map((type) => ({ type, connection: String(index), port: String(port) })),
  );
}

/**
 * Sees one session, read-only, on every carrier. One side's events come in byte order, before the
 * bytes are passed on; the two sides are not ordered. Nothing follows `onEnd`.
 */
export interface SessionObserver {
  /**
   * An exception in a required observer ends the session. Any other observer is detached, and the
   * session continues.
   */
  readonly isRequired: boolean;
  /**
   * Absent: the observer gets no payload, and a pass-through session is decoded by its headers
   * only. Read once.
   */
  readonly payload?: ObservedPayload | undefined;
  /** True: the observer needs no more events. */
  readonly isDone?: boolean | undefined;
  /** Called first, once. `info` names the user and the target; the session may be ended and held later. */
  onBegin?(session: ObservedSession): void;
  /**
   * A port-forward's client opened a stream, or changed a stream's port. A returned end refuses the
   * session, and nothing is passed on.
   */
  onStream?(stream: SessionStream): SessionEnd | undefined;
  /**
   * A stream's payload, never empty; a command's "error" stream goes to `onStatus`. `part` is valid
   * during the call only. Do not write to it. A returned end refuses the part: it is not passed on.
   */
  onData?(stream: SessionStream, from: Side, part: Uint8Array): SessionEnd | undefined;
  /** A user that can type into the session has joined it, or has left it. */
  onJoin?(user: string, hasJoined: boolean): void;
  /** A side has ended stdin or a port-forward stream. Not every protocol can signal it. */
  onStreamEnd?(stream: SessionStream, from: Side): void;
  /** A piece of the node's report on an exec's or attach's error stream: a JSON Status, or text before v4. */
  onStatus?(part: Uint8Array): void;
  /** The node ended the error stream properly, or closed the session with 1000. */
  onStatusEnd?(): void;
  /**
   * The node begins to report the end of an exec or attach. The client gets no more until the
   * promise settles; the observer limits the wait. Called again if output follows.
   */
  onReport?(): Promise<void> | undefined;
  /**
   * This side can no longer be decoded. A returned end refuses the session; otherwise it continues
   * unobserved.
   */
  onUndecodable?(side: Side, message: string): SessionEnd | undefined;
  /**
   * Called last, once, when the session is over. Its end is reported, and a shutdown continues,
   * when the promise settles or after MAX_END_WAIT_MS.
   */
  onEnd?(report: SessionReport): Promise<void> | void;
  /**
   * For an observer from `beforeDial`: called instead of all others if the session did not start.
   */
  onNotStarted?(): void;
}
