import { ReadStream, type WriteStream } from "node:tty";
import type { CommandEnd, CommandStreams } from "../../client/command-run.ts";
import { FallbackExecutor, SpdyExecutor, shouldFallBack, WebSocketExecutor } from "../../client/executors.ts";
import type { CommandPath } from "../../client/pod-paths.ts";
import { type ClientConnection, webSocketsAreOn } from "./connection.ts";
import { reportError } from "./report-error.ts";
import { EscapeFilter, enterRawMode, terminalSizes } from "./terminal.ts";

const NOT_A_TERMINAL = "Unable to use a TTY - input is not a terminal or the right kind of file\n";

export interface CommandSession {
  readonly path: CommandPath;
  readonly stdin: boolean;
  readonly tty: boolean;
  /** An attach asks the program to draw itself anew, and cannot know whether a prompt is due. */
  readonly isAttach: boolean;
  readonly isQuiet: boolean;
  /** "none", or the character of `~.`. */
  readonly escapeCharacter: string;
}

/** WebSocket first and SPDY where client-go would fall back, or SPDY alone where the user switched WebSockets off. */
export function commandExecutor({ target, verbosity }: ClientConnection, path: CommandPath) {
  const spdy = new SpdyExecutor(target, path);
  if (!webSocketsAreOn("KUBECTL_REMOTE_COMMAND_WEBSOCKETS")) return spdy;
  return new FallbackExecutor(new WebSocketExecutor(target, path), spdy, (error) => {
    const falls = shouldFallBack(error);
    if (falls) verbosity.note(`RemoteCommand fallback: ${(error as Error).message}`);
    return falls;
  });
}

/** Joins a remote command with this process' own streams; resolves to the exit code: its own, or 1. */
export async function runCommandSession(
  connection: ClientConnection,
  session: CommandSession,
): Promise<number> {
  const hasTerminal = process.stdin instanceof ReadStream && process.stdin.isTTY;
  const tty = session.tty && hasTerminal && session.stdin;
  if (session.tty && session.stdin && !tty && !session.isQuiet) process.stderr.write(NOT_A_TERMINAL);
  const ended = new AbortController();
  const restore = tty ? enterRawMode(process.stdin as ReadStream) : () => {};
  const input = inputOf(session, tty, () => ended.abort());
  const streams: CommandStreams = {
    ...(session.stdin && { stdin: input }),
    stdout: process.stdout,
    ...(!tty && { stderr: process.stderr }),
    ...(tty &&
      process.stdout.isTTY && {
        terminalSizes: terminalSizes(process.stdout as WriteStream, session.isAttach),
      }),
    tty,
    signal: ended.signal,
  };
  if (session.isAttach && tty && !session.isQuiet) {
    process.stderr.write("If you don't see a command prompt, try pressing enter.\n");
  }
  try {
    return report(await commandExecutor(connection, session.path).stream(streams));
  } catch (error) {
    restore();
    if (!ended.signal.aborted) return reportError(error);
    process.stderr.write("\nsession closed.\n");
    return 1;
  } finally {
    restore();
    process.stdin.destroy();
  }
}

function inputOf(
  { escapeCharacter }: CommandSession,
  tty: boolean,
  onEscape: () => void,
): NodeJS.ReadStream | EscapeFilter {
  if (!tty || escapeCharacter === "none") return process.stdin;
  return process.stdin.pipe(new EscapeFilter(escapeCharacter, onEscape));
}

function report({ exitCode }: CommandEnd): number {
  if (exitCode !== 0) process.stderr.write(`command terminated with exit code ${exitCode}\n`);
  return exitCode;
}
