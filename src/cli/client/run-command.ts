import type { Readable } from "node:stream";
import { ReadStream, type WriteStream } from "node:tty";
import type { CommandEnd } from "@sluice/client/internal/command-end";
import type { CommandStreams } from "@sluice/client/internal/command-run";
import { shouldFallBack } from "@sluice/client/internal/connect";
import {
  type ExecutorOptions,
  FallbackExecutor,
  SpdyExecutor,
  WebSocketExecutor,
} from "@sluice/client/internal/executors";
import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import type { CommandPath, PodReference } from "@sluice/client/internal/pod-paths";
import type { TerminalSize } from "@sluice/protocols/remotecommand";
import { maskControls } from "../../observability/mask-controls.ts";
import { type ClientConnection, parseResource, resumeOptions, webSocketsAreOn } from "./connection.ts";
import { containerOf, PodSource, podsWithin, usablePods } from "./find-pods.ts";
import type { PodObject } from "./pod-objects.ts";
import { reportError } from "./report-error.ts";
import { DetachFilter, EscapeFilter, enterRawMode, writeWithoutWaiting } from "./terminal.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** How long the last frames may take to be sent after the session ends. */
const FLUSH_MS = 50;
const NOT_A_TERMINAL = "Unable to use a TTY - input is not a terminal or the right kind of file\n";
/** kubectl's, with a terminal and without. */
const ATTACH_NOTICE =
  "All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed through the command prompt.\nIf you don't see a command prompt, try pressing enter.\n";

interface CommandSession {
  readonly path: CommandPath;
  readonly stdin: boolean;
  readonly tty: boolean;
  /** An attach makes the program redraw, and cannot know whether a prompt is to be expected. */
  readonly isAttach: boolean;
  readonly isQuiet: boolean;
  /** "none", or the character of `~.`. */
  readonly escapeCharacter: string;
  /** Keys that end the command but not the remote process; absent or empty for none. */
  readonly detachKeys?: Buffer;
}

/**
 * WebSocket first, with SPDY whenever client-go would fall back; or SPDY alone if the user turned
 * WebSockets off.
 */
export function commandExecutor(
  { target, verbosity }: ClientConnection,
  path: CommandPath,
  options: ExecutorOptions = {},
) {
  const spdy = new SpdyExecutor(target, path);
  if (!webSocketsAreOn("KUBECTL_REMOTE_COMMAND_WEBSOCKETS")) return spdy;
  return new FallbackExecutor(new WebSocketExecutor(target, path, options), spdy, (error) => {
    const falls = shouldFallBack(error);
    if (falls) verbosity.note(`RemoteCommand fallback: ${(error as Error).message}`);
    return falls;
  });
}

/** Connects a remote command to this process' streams. Resolves to the command's exit code, or 1. */
export async function runCommandSession(
  connection: ClientConnection,
  session: CommandSession,
): Promise<number> {
  // Without need it is not opened: that loads Node's readers of files.
  const usesTerminal = session.tty && session.stdin;
  const tty = usesTerminal && process.stdin instanceof ReadStream && process.stdin.isTTY;
  if (usesTerminal && !tty && !session.isQuiet) process.stderr.write(NOT_A_TERMINAL);
  if (session.isAttach && !session.isQuiet) process.stderr.write(ATTACH_NOTICE);
  writeWithoutWaiting(process.stdout, process.stderr);
  const ended = new AbortController();
  const restore = tty ? enterRawMode(process.stdin as ReadStream, "a terminal") : () => {};
  let isDetached = false;
  const detach = (): void => {
    isDetached = true;
    ended.abort();
  };
  const streams: CommandStreams = {
    ...(session.stdin && { stdin: inputOf(session, tty, () => ended.abort(), detach) }),
    stdout: process.stdout,
    ...(!tty && { stderr: process.stderr }),
    ...(tty &&
      process.stdout.isTTY && {
        terminalSizes: terminalSizes(process.stdout as WriteStream, session.isAttach),
      }),
    tty,
    signal: ended.signal,
  };
  const signals = new TerminationSignals(() => ended.abort());
  try {
    const executor = commandExecutor(connection, session.path, { resume: resumeOptions(connection) });
    const end = await executor.stream(streams);
    restore();
    return report(end);
  } catch (error) {
    restore();
    if (!ended.signal.aborted) return reportError(error);
    if (signals.haveCome) return 1;
    if (isDetached) return 0;
    process.stderr.write("\nsession closed.\n");
    // A terminal that does not read would keep this process alive because of its unprinted output.
    if (process.stdout.writableLength > 0 || process.stderr.writableLength > 0) process.exit(1);
    return 1;
  } finally {
    signals.release();
    restore();
    if (session.stdin) process.stdin.destroy();
  }
}

/**
 * On a termination signal, ends the session at the server first: if only the connection were
 * closed, the server would keep the session. Then the signal takes effect.
 */
class TerminationSignals {
  haveCome = false;
  readonly #onEnd: () => void;

  constructor(onEnd: () => void) {
    this.#onEnd = onEnd;
    for (const signal of SIGNALS) process.on(signal, this.#end);
  }

  release(): void {
    if (!this.haveCome) for (const signal of SIGNALS) process.off(signal, this.#end);
  }

  readonly #end = (signal: NodeJS.Signals): void => {
    if (this.haveCome) return;
    this.haveCome = true;
    this.#onEnd();
    setTimeout(() => {
      for (const each of SIGNALS) process.off(each, this.#end);
      process.kill(process.pid, signal);
    }, FLUSH_MS);
  };
}

function inputOf(
  { escapeCharacter, detachKeys }: CommandSession,
  tty: boolean,
  onEscape: () => void,
  onDetach: () => void,
): Readable {
  if (!tty) return process.stdin;
  const kept = detachKeys?.length
    ? process.stdin.pipe(new DetachFilter(detachKeys, onDetach))
    : process.stdin;
  return escapeCharacter === "none" ? kept : kept.pipe(new EscapeFilter(escapeCharacter, onEscape));
}

function report({ exitCode }: CommandEnd): number {
  if (exitCode !== 0) process.stderr.write(`command terminated with exit code ${exitCode}\n`);
  return exitCode;
}

/** A container that was found, in a pod. */
interface FoundContainer extends PodReference {
  /** Whether the container's main process has a terminal. */
  readonly hasTerminal: boolean;
}

/** Finds the container for a command. Returns the exit code if there is none, with the reason on stderr. */
export async function findContainer(
  connection: ClientConnection,
  resource: string | undefined,
  containerName: string | undefined,
  {
    isQuiet,
    timeoutMs,
    purpose = "exec into",
  }: { isQuiet: boolean; timeoutMs: number; purpose?: "exec into" | "attach" },
): Promise<FoundContainer | number> {
  const source = new PodSource(connection, parseResource(resource));
  let pod: PodObject | undefined;
  try {
    const pods = await podsWithin(source, timeoutMs);
    pod = usablePods(pods, source.isOnePod)[0] ?? pods[0];
    if (pod === undefined) throw new ConnectError("http", `no pod found for ${resource}`);
    const { phase = "" } = pod.status ?? {};
    if (phase === "Succeeded" || phase === "Failed") {
      throw new ConnectError(
        "http",
        `cannot ${purpose} a container in a completed pod; current phase is ${phase}`,
      );
    }
    const { container, notice } = containerOf(pod, containerName);
    if (notice !== undefined && !isQuiet) process.stderr.write(`${maskControls(notice)}\n`);
    return {
      namespace: connection.namespace,
      pod: pod.metadata.name,
      container: container.name,
      hasTerminal: container.tty === true,
    };
  } catch (error) {
    if (error instanceof ConnectError) return reportError(error);
    process.stderr.write(`error: ${maskControls((error as Error).message)}\n`);
    return 1;
  }
}

/**
 * Yields the terminal's size now and after each change; only the newest waits. `redraws`: like
 * kubectl, sends a size one larger first, so that the attached program redraws.
 */
async function* terminalSizes(
  output: WriteStream,
  redraws: boolean,
): AsyncGenerator<TerminalSize, void, void> {
  let wake: () => void = () => {};
  const onResize = (): void => wake();
  output.on("resize", onResize);
  try {
    if (redraws) yield { width: output.columns + 1, height: output.rows + 1 };
    for (;;) {
      const resized = new Promise<void>((resolve) => {
        wake = resolve;
      });
      yield { width: output.columns, height: output.rows };
      await resized;
    }
  } finally {
    output.off("resize", onResize);
  }
}
