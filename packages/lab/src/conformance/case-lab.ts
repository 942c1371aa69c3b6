import type { DialRequest } from "@sluice/client";
import {
  defaultSessionTimes,
  dial,
  type PortForwardConnection,
  type SessionTimes,
  SpdyDialer,
  TunnelDialer,
  type UpgradedConnection,
} from "@sluice/client";
import type { HeaderList } from "@sluice/client/internal/http/header-list";
import { connectThroughProxy } from "@sluice/client/internal/http/proxies/proxy-connection";
import { requestUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";
import { SessionClock } from "@sluice/client/internal/net/session-clock";
import { isRemoteCommandVersion, type RequestedStreams } from "@sluice/protocols/remotecommand";
import type { Endpoint, SessionPlace, SessionRequest } from "./endpoint.ts";
import { type CommandTransport, type ForwardTransport, OFFERS } from "./endpoint.ts";
import { CommandSession, type CommandSessionOptions, Violation } from "./judge.ts";
import type { LabSettings } from "./lab-settings.ts";

const MAX_BODY_BYTES = 64 * 1024;

/** Test deadlines are shorter than clients', so they need a finer clock. */
const CLOCK_INTERVAL_MS = 100;
const clock = new SessionClock(CLOCK_INTERVAL_MS);

interface ExecOptions extends CommandSessionOptions {
  readonly stdin?: boolean | undefined;
  readonly stderr?: boolean | undefined;
  readonly tty?: boolean | undefined;
  readonly times?: Partial<SessionTimes> | undefined;
  readonly kind?: "exec" | "attach" | undefined;
  /** Replaces the subprotocols that the transport would offer. */
  readonly offer?: Pick<DialRequest, "transport" | "protocols"> | undefined;
}

/** The tools of one case. Closes everything the case opened when it ends. */
export class CaseLab {
  readonly endpoint: Endpoint;
  readonly settings: LabSettings;
  readonly signal: AbortSignal;
  /** A measurement or remark for the report. */
  note: string | undefined;
  readonly #closers: (() => void)[] = [];

  constructor(endpoint: Endpoint, settings: LabSettings, signal: AbortSignal) {
    this.endpoint = endpoint;
    this.settings = settings;
    this.signal = signal;
  }

  /** Throws ConnectError, and Violation if the server chose a protocol that was not offered. */
  async command(
    transport: CommandTransport,
    command: readonly string[],
    {
      stdin = false,
      stderr = false,
      tty = false,
      times,
      kind = "exec",
      offer = OFFERS[transport],
      ...options
    }: ExecOptions = {},
  ): Promise<CommandSession> {
    const streams: RequestedStreams = { stdin, stdout: true, stderr: stderr && !tty, tty };
    const connection = await this.dial({ kind, command, streams }, offer);
    const { protocol, socket } = connection;
    if (!isRemoteCommandVersion(protocol) || !offer.protocols.includes(protocol)) {
      socket.destroy();
      throw new Violation(
        `offered ${offer.protocols.join(", ")}, the server chose ${JSON.stringify(protocol)}`,
      );
    }
    const sessionTimes = { ...defaultSessionTimes, clock, ...times };
    const session = new CommandSession(connection, protocol, streams, sessionTimes, options);
    this.onClose(() => {
      if (!session.isOver) session.abort();
    });
    return session;
  }

  /** Runs a script in the container's shell. */
  shell(transport: CommandTransport, script: string, options?: ExecOptions): Promise<CommandSession> {
    return this.command(transport, ["sh", "-c", script], options);
  }

  /** Opens a port-forward session. Throws ConnectError. */
  async forward(
    transport: ForwardTransport,
    times: Partial<SessionTimes> = {},
  ): Promise<PortForwardConnection> {
    const { target, path } = await this.endpoint.placeOf({ kind: "port-forward" });
    const { dialTimeoutMs } = this.settings;
    const options = { dialTimeoutMs, responseHeaderTimeoutMs: dialTimeoutMs, times: { clock, ...times } };
    const dialer =
      transport === "tunnel"
        ? new TunnelDialer(target, path, options)
        : new SpdyDialer(target, path, options);
    const connection = await dialer.dial(this.signal);
    this.onClose(() => connection.close());
    return connection;
  }

  /** An upgraded connection without session handling; the caller owns its socket. Throws ConnectError. */
  async dial(
    request: SessionRequest,
    offer: Pick<DialRequest, "transport" | "protocols">,
    headers: HeaderList = [],
  ): Promise<UpgradedConnection> {
    const { target, path } = await this.endpoint.placeOf(request);
    const { dialTimeoutMs } = this.settings;
    const { signal } = this;
    const times = { dialTimeoutMs, responseHeaderTimeoutMs: dialTimeoutMs };
    const connection = await dial(target, { path, ...offer, headers, signal, ...times });
    // A case may end before it listens to the socket.
    connection.socket.on("error", () => {});
    this.onClose(() => connection.socket.destroy());
    return connection;
  }

  /** Sends a request exactly as given and returns any answer. */
  async answer(request: SessionRequest, method: string, headers: HeaderList): Promise<UpgradeAnswer> {
    const place = await this.endpoint.placeOf(request);
    return answerTo(place, method, headers, this.settings.dialTimeoutMs, this.signal);
  }

  onClose(close: () => void): void {
    this.#closers.push(close);
  }

  close(): void {
    for (const close of this.#closers.splice(0)) close();
  }

  /** Throws Violation if it takes too long. */
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

/** The answer to an upgrade request, unchanged. */
export interface UpgradeAnswer {
  readonly status: number;
  readonly headers: HeaderList;
  /** Empty for a 101. */
  readonly body: Buffer;
  /** Why the body is incomplete; undefined if it is complete. */
  readonly bodyProblem?: string;
}

/** Sends one request, and closes the connection after its answer. Throws UpstreamError if none arrives. */
async function answerTo(
  { target, path }: SessionPlace,
  method: string,
  headers: HeaderList,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<UpgradeAnswer> {
  const { endpoint, proxy } = target;
  const response = await requestUpgrade({
    endpoint,
    method,
    path: target.pathOf(path),
    headers: [["Host", target.url.host], ...(await target.headers()), ...headers],
    dialTimeoutMs: timeoutMs,
    responseHeaderTimeoutMs: timeoutMs,
    relayAnswersMs: timeoutMs,
    signal,
    connect: proxy && ((options) => connectThroughProxy(proxy, endpoint, options)),
  });
  const { status, rawHeaders } = response;
  if (response.kind === "switched") {
    response.socket.on("error", () => {});
    response.socket.destroy();
    return { status, headers: rawHeaders, body: Buffer.alloc(0) };
  }
  const parts: Buffer[] = [];
  let byteLength = 0;
  let bodyProblem: string | undefined;
  try {
    for await (const part of response.body) {
      parts.push(part as Buffer);
      byteLength += (part as Buffer).byteLength;
      if (byteLength > MAX_BODY_BYTES) break;
    }
  } catch (error) {
    bodyProblem = error instanceof Error ? error.message : String(error);
  }
  response.body.destroy();
  const answer = { status, headers: rawHeaders, body: Buffer.concat(parts) };
  return bodyProblem === undefined ? answer : { ...answer, bodyProblem };
}
