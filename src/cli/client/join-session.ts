import { Transform } from "node:stream";
import { ReadStream } from "node:tty";
import type { CommandStreams } from "@sluice/client/internal/command-run";
import { WebSocketExecutor } from "@sluice/client/internal/executors";
import { SessionError } from "@sluice/client/internal/sessions/session-error";
import { maskControls } from "../../observability/mask-controls.ts";
import { TerminalFilter } from "../../recording/format/terminal-filter.ts";
import { JOIN_ENDED } from "../../sessions/session-joins.ts";
import { lendTerminal } from "../print-text.ts";
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
    process.stderr.write(`Joining session ${name}. Press ${namesOf(detachKeys)} to leave it.\r\n`);
  // The session's screen is drawn over that line at once; the title stays.
  const takeBack = lendTerminal(`${RESTORE_TITLE}${TerminalFilter.RESET}`, titled(name, detachKeys));
  let end: JoinEnd;
  try {
    await new WebSocketExecutor(connection.target, () => path).stream(streams);
    end = over(name);
  } catch (error) {
    if (isInterrupted) return 130;
    const status = error instanceof SessionError ? error.status : undefined;
    if (left.signal.aborted) end = { exitCode: 0, text: `left session ${name}` };
    else if (status === undefined) throw error;
    else end = endOf(name, status);
  } finally {
    process.off("SIGINT", onInterrupt);
    restore();
    // Terminal modes that the session has set stay with its owner. What follows is not on its screen.
    takeBack();
    process.stdin.destroy();
  }
  process.stderr.write(`${end.text}\n`);
  return end.exitCode;
}

interface JoinEnd {
  readonly exitCode: number;
  readonly text: string;
}

function endOf(name: string, { details, message = "" }: NonNullable<SessionError["status"]>): JoinEnd {
  const isOwn = details?.causes?.some(({ reason }) => reason === JOIN_ENDED) === true;
  if (!isOwn) return over(name, maskControls(message));
  return { exitCode: 1, text: `error: the join ended before its session: ${maskControls(message)}` };
}

function over(name: string, message = ""): JoinEnd {
  return { exitCode: 0, text: `session ${name} is over${message === "" ? "" : `: ${message}`}` };
}

/** Saves the terminal's title, if the terminal can, and sets another: xterm's sequences. */
function titled(name: string, detachKeys: Buffer): string {
  const leave = detachKeys.byteLength > 0 ? `, ${namesOf(detachKeys)} leaves it` : "";
  return `\u001b[22;2t\u001b]2;session ${name}${leave}\u0007`;
}

const RESTORE_TITLE = "\u001b[23;2t";

/** As the flag has them: `ctrl-p,ctrl-q`. */
function namesOf(keys: Buffer): string {
  const nameOf = (key: number): string =>
    key < 0x20 ? `ctrl-${String.fromCharCode(key | 0x40).toLowerCase()}` : String.fromCharCode(key);
  return [...keys].map(nameOf).join();
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
