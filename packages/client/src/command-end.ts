import { outcomeOf, type RemoteCommandVersion, specOf } from "@sluice/protocols/remotecommand";
import { printable } from "./refusal.ts";
import { SessionError } from "./sessions/session-error.ts";

/**
 * A session's status: a few hundred bytes, but it may quote a long command line. Past it:
 * `SessionError` "protocol-error".
 */
export const MAX_STATUS_BYTES: number = 64 * 1024;

/** The command exited by itself, with an exit code from 0 to 255. */
export interface CommandEnd {
  readonly exitCode: number;
  /** The server's message for a code other than 0, otherwise "". */
  readonly message: string;
}

/** How the command ended according to the session's status; undefined if the status does not say. */
export function commandEndOf(
  version: RemoteCommandVersion,
  status: Uint8Array,
): CommandEnd | SessionError | undefined {
  const outcome = outcomeOf(version, status);
  switch (outcome.type) {
    case "success":
      return { exitCode: 0, message: "" };
    case "exit":
      return { exitCode: outcome.code, message: printable(outcome.message) };
    case "failure": {
      const message = printable(outcome.message) || "the server gave no reason";
      const text = specOf(version).hasStatusJson ? message : `error executing remote command: ${message}`;
      return new SessionError("remote-failure", text, { status: outcome.status });
    }
    case "missing":
      return undefined;
  }
}
