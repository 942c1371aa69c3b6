import {
  isRemoteCommandVersion,
  type RemoteCommandVersion,
  type RequestedStreams,
} from "../../protocols/remotecommand/index.ts";
import { defaultSessionTimes, dial, type SessionTimes } from "../client/index.ts";
import { SessionClock } from "../net/session-clock.ts";
import { CommandSession, type CommandSessionOptions } from "./command-session.ts";
import type { Endpoint } from "./endpoint.ts";
import type { LabSettings } from "./lab-settings.ts";
import { COMMAND_OFFERS, type CommandTransport } from "./transports.ts";
import { Violation } from "./violation.ts";

/** Deadlines of tests are shorter than those of clients, so that they need a finer clock. */
const CLOCK_INTERVAL_MS = 100;
const clock = new SessionClock(CLOCK_INTERVAL_MS);

export interface ExecOptions extends CommandSessionOptions {
  readonly stdin?: boolean | undefined;
  readonly stderr?: boolean | undefined;
  readonly tty?: boolean | undefined;
  readonly times?: Partial<SessionTimes> | undefined;
  readonly kind?: "exec" | "attach" | undefined;
}

/** What one case works with. Whatever it opened is closed when the case is over. */
export class CaseLab {
  readonly endpoint: Endpoint;
  readonly settings: LabSettings;
  readonly signal: AbortSignal;
  /** What a case measured, or found worth mentioning. */
  note: string | undefined;
  readonly #closers: (() => void)[] = [];

  constructor(endpoint: Endpoint, settings: LabSettings, signal: AbortSignal) {
    this.endpoint = endpoint;
    this.settings = settings;
    this.signal = signal;
  }

  /** Throws ConnectError, and Violation where the server chose a protocol that was not offered. */
  async command(
    transport: CommandTransport,
    command: readonly string[],
    { stdin = false, stderr = false, tty = false, times, kind = "exec", ...options }: ExecOptions = {},
  ): Promise<CommandSession> {
    const streams: RequestedStreams = { stdin, stdout: true, stderr: stderr && !tty, tty };
    const { target, path } = await this.endpoint.placeOf({ kind, command, streams });
    const offer = COMMAND_OFFERS[transport];
    const { dialTimeoutMs } = this.settings;
    const connection = await dial(target, {
      path,
      ...offer,
      signal: this.signal,
      dialTimeoutMs,
      responseHeaderTimeoutMs: dialTimeoutMs,
    });
    const { protocol, socket } = connection;
    if (!isRemoteCommandVersion(protocol) || !offer.protocols.includes(protocol)) {
      socket.destroy();
      throw new Violation(
        `offered ${offer.protocols.join(", ")}, the server chose ${JSON.stringify(protocol)}`,
      );
    }
    const version: RemoteCommandVersion = protocol;
    const session = new CommandSession(
      connection,
      version,
      streams,
      { ...defaultSessionTimes, clock, ...times },
      options,
    );
    this.onClose(() => {
      if (!session.isOver) session.abort();
    });
    return session;
  }

  /** A script of the container's shell. */
  shell(transport: CommandTransport, script: string, options?: ExecOptions): Promise<CommandSession> {
    return this.command(transport, ["sh", "-c", script], options);
  }

  onClose(close: () => void): void {
    this.#closers.push(close);
  }

  close(): void {
    for (const close of this.#closers.splice(0)) close();
  }

  /** Throws Violation where it does not come in time. */
  async within<T>(
    what: string,
    promise: Promise<T>,
    timeoutMs: number = this.settings.stepTimeoutMs,
  ): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Violation(`${what}: not within ${timeoutMs / 1_000} s`)),
        timeoutMs,
      );
    });
    try {
      return await Promise.race([promise, timeout]);
    } finally {
      clearTimeout(timer);
    }
  }
}
