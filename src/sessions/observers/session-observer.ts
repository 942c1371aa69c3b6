import type { SessionReport } from "../session.ts";
import type { SessionEnd } from "../session-end.ts";
import type { RunningSession } from "../sessions.ts";

export type Side = "client" | "node";

/** A stream of a session, by what it means: over WebSocket it is a channel. */
export interface SessionStream {
  readonly type: "stdin" | "stdout" | "stderr" | "resize" | "data" | "error";
  /** Of a port-forward: the connection that the stream belongs to, and its port as the client wrote it. */
  readonly connection?: string | undefined;
  readonly port?: string | undefined;
}

/** What an observer knows of its session, and may do to it. */
export type ObservedSession = Pick<RunningSession, "info" | "cut">;

export const STDIN: SessionStream = { type: "stdin" };
export const STDOUT: SessionStream = { type: "stdout" };
export const STDERR: SessionStream = { type: "stderr" };
export const RESIZE: SessionStream = { type: "resize" };

/** The streams of a legacy port-forward, by channel. */
export function legacyStreams(ports: readonly number[]): readonly SessionStream[] {
  return ports.flatMap((port, index) =>
    (["data", "error"] as const).map((type) => ({ type, connection: String(index), port: String(port) })),
  );
}

/**
 * Sees one session, read-only, on every carrier. Events of one side come in the order of its bytes,
 * before those are passed on; the two sides have no order. Nothing follows `onEnd`.
 */
export interface SessionObserver {
  /** What a required observer throws ends the session; another one is detached, and the session continues. */
  readonly isRequired: boolean;
  /** The sides whose payload `onData` is shown. Absent: none, and a session that passes through is decoded by its headers only. */
  readonly payload?: "node" | "both" | undefined;
  /** True: it needs no further event. */
  readonly isDone?: boolean | undefined;
  /** First, and once. `info` has the user and the target; `cut` ends the session later on. */
  onBegin?(session: ObservedSession): void;
  /** A client of a port-forward opened a stream, or named another port for it. The result refuses the session: nothing is passed on. */
  onStream?(stream: SessionStream): SessionEnd | undefined;
  /**
   * Payload of a stream, never empty; the "error" stream of a command is `onStatus`. `part` is valid
   * during the call, and must not be written to.
   */
  onData?(stream: SessionStream, from: Side, part: Uint8Array): void;
  /** A side has no more for this stream: stdin, or the streams of a port-forward. Not every protocol has it. */
  onStreamEnd?(stream: SessionStream, from: Side): void;
  /** A piece of what the node reports on the error stream of an exec or attach: a Status in JSON, or text before v4. */
  onStatus?(part: Uint8Array): void;
  /** The node ended the error stream properly, or closed the session with 1000. */
  onStatusEnd?(): void;
  /** No more of this side can be decoded. The result refuses the session; otherwise it continues, unseen. */
  onUndecodable?(side: Side, message: string): SessionEnd | undefined;
  /** The session is over. Last, and once. */
  onEnd?(report: SessionReport): void;
}
