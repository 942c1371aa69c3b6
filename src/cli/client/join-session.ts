import { Transform } from "node:stream";
import { ReadStream } from "node:tty";
import type { CommandStreams } from "@sluice/client/internal/command-run";
import { WebSocketExecutor } from "@sluice/client/internal/executors";
import { SessionError } from "@sluice/client/internal/sessions/session-error";
import { maskControls } from "../../observability/mask-controls.ts";
import { TERMINAL_RESET, TerminalFilter } from "../../recording/format/terminal-filter.ts";
import { JOIN_ENDED } from "../../sessions/session-joins.ts";
import type { ClientConnection } from "./connection.ts";
import { type SessionsValues, sessionPath } from "./session-requests.ts";
import { DetachFilter, enterRawMode, writeWithoutWaiting } from "./terminal.ts";

/**
 * Types into another user's session and shows its output. Exit codes: 0 if the user left or the
 * session ended, 1 if the join ended first, 130 after SIGINT without a terminal (a terminal types
 * Ctrl-C).
 */
export async function joinSession(
  connection: ClientConnection,
  wanted: string,
  values: SessionsValues,
): Promise<number> {
  const path = `${await sessionPath(connection, wanted, values)}/attach`;
  const detachKeys = values["detach-keys"];
  const name = maskControls(wanted);
  const terminal = process.stdin instanceof ReadStream && process.stdin.isTTY ? process.stdin : undefined;
  const left = new AbortController();
  let isInterrupted = false;
  const onInterrupt = (): void => {
    isInterrupted = true;
    left.abort();
  };
  process.once("SIGINT", onInterrupt);
  writeWithoutWaiting(process.stdout);
  const restore = terminal === undefined ? () => {} : enterRawMode(terminal, "a pipe");
  const shown = filtered();
  shown.pipe(process.stdout, { end: false });
  const streams: CommandStreams = {
    stdin: inputOf(terminal, detachKeys, () => left.abort()),
    stdout: shown,
    signal: left.signal,
  };
  if (terminal !== undefined && detachKeys.byteLength > 0)
    process.stderr.write(`You type into session ${name}. The detach keys leave it.\r\n`);
  try {
    await new WebSocketExecutor(connection.target, () => path).stream(streams);
    return over(name);
  } catch (error) {
    if (isInterrupted) return 130;
    if (left.signal.aborted) return said(0, `\r\nleft session ${name}`);
    const status = error instanceof SessionError ? error.status : undefined;
    if (status === undefined) throw error;
    const isOwn = status.details?.causes?.some(({ reason }) => reason === JOIN_ENDED) === true;
    const message = maskControls(status.message ?? "");
    return isOwn ? said(1, `error: the join ended before its session: ${message}`) : over(name, message);
  } finally {
    process.off("SIGINT", onInterrupt);
    restore();
    // Terminal modes that the session has set stay with its owner.
    if (process.stdout.isTTY) process.stdout.write(`${TERMINAL_RESET}\n`);
    process.stdin.destroy();
  }
}

function over(name: string, message = ""): number {
  return said(0, `session ${name} is over${message === "" ? "" : `: ${message}`}`);
}

function said(exitCode: number, line: string): number {
  process.stderr.write(`${line}\n`);
  return exitCode;
}

/** Another person's output, without sequences that could harm this terminal. */
function filtered(): Transform {
  const filter = new TerminalFilter();
  const decoder = new TextDecoder();
  return new Transform({
    transform: (chunk: Uint8Array, _encoding, done) =>
      done(null, filter.push(decoder.decode(chunk, { stream: true }))),
  });
}

function inputOf(terminal: ReadStream | undefined, detachKeys: Buffer, onDetach: () => void) {
  if (terminal === undefined || detachKeys.byteLength === 0) return process.stdin;
  return terminal.pipe(new DetachFilter(detachKeys, onDetach));
}
