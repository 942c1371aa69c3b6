import {
  isRemoteCommandVersion,
  type RemoteCommandVersion,
  type RequestedStreams,
} from "../../protocols/remotecommand/index.ts";
import { ConnectError } from "../http/upstream/connect-error.ts";
import { type CommandEnd, CommandRun, type CommandStreams } from "./command-run.ts";
import { type DialRequest, dial, type UpgradedConnection } from "./connect.ts";
import { dialWith } from "./dial-with.ts";
import type { CommandPath } from "./pod-paths.ts";
import type { ResumeOptions } from "./resume-options.ts";
import { defaultSessionTimes, type SessionTimes } from "./session-times.ts";
import type { Target } from "./target.ts";
import { WebSocketCommandLink } from "./websocket-command-link.ts";

export interface ExecutorOptions {
  readonly times?: Partial<SessionTimes> | undefined;
  readonly dialTimeoutMs?: number | undefined;
  readonly responseHeaderTimeoutMs?: number | undefined;
  /**
   * WebSocket sessions shall survive lost connections, where the server is a Sluice that agrees (protocols/resume). With every other
   * server, and over SPDY, it changes nothing. Off unless given; `true` is `{}`.
   */
  readonly resume?: boolean | ResumeOptions | undefined;
}

/** Runs one exec or attach at a time or many at once. */
export interface Executor {
  /**
   * Resolves with the exit code when the server has said how the command ended; a code other than 0 is no error.
   *
   * Throws ConnectError where no session came about and SessionError where one broke. Nothing of the input has been read
   * when it throws ConnectError.
   */
  stream(streams: CommandStreams): Promise<CommandEnd>;
}

/** What servers of Kubernetes accept; v1 never reports a failure and is not offered. */
const SPDY_VERSIONS: readonly RemoteCommandVersion[] = [
  "v4.channel.k8s.io",
  "v3.channel.k8s.io",
  "v2.channel.k8s.io",
];
const WEBSOCKET_VERSIONS: readonly RemoteCommandVersion[] = ["v5.channel.k8s.io"];

/** Channels over a WebSocket: API servers from 1.30 on, and gateways. */
export class WebSocketExecutor implements Executor {
  readonly #target: Target;
  readonly #path: CommandPath;
  readonly #options: ExecutorOptions;
  readonly #versions: readonly RemoteCommandVersion[];

  /** `versions`: best first. v5 is the only one that can end a command's input. */
  constructor(
    target: Target,
    path: CommandPath,
    options: ExecutorOptions = {},
    versions: readonly RemoteCommandVersion[] = WEBSOCKET_VERSIONS,
  ) {
    this.#target = target;
    this.#path = path;
    this.#options = options;
    this.#versions = versions;
  }

  async stream(streams: CommandStreams): Promise<CommandEnd> {
    const request = dialRequest("websocket", this.#path, this.#versions, streams, this.#options);
    const connection = await dialWith(this.#target, request, this.#options.resume);
    const version = versionOf(connection, this.#versions);
    const times = { ...defaultSessionTimes, ...this.#options.times };
    return new CommandRun(
      (handler) => new WebSocketCommandLink(connection, version, handler, times),
      version,
      streams,
      times,
    ).run();
  }
}

/** Streams over SPDY/3.1: every API server and kubelet. */
export class SpdyExecutor implements Executor {
  readonly #target: Target;
  readonly #path: CommandPath;
  readonly #options: ExecutorOptions;

  constructor(target: Target, path: CommandPath, options: ExecutorOptions = {}) {
    this.#target = target;
    this.#path = path;
    this.#options = options;
  }

  async stream(streams: CommandStreams): Promise<CommandEnd> {
    const request = dialRequest("spdy", this.#path, SPDY_VERSIONS, streams, this.#options);
    // Most servers speak WebSocket, and SPDY's modules take longer to load than a small command takes to run.
    const { SpdyCommandLink } = await import("./spdy-command-link.ts");
    const connection = await dial(this.#target, request);
    const version = versionOf(connection, SPDY_VERSIONS);
    const times = { ...defaultSessionTimes, ...this.#options.times };
    return new CommandRun(
      (handler) => new SpdyCommandLink(connection, version, requestedOf(streams), handler, times),
      version,
      streams,
      times,
    ).run();
  }
}

/** Tries the first, and the second where the first could not upgrade: see `shouldFallBack`. */
export class FallbackExecutor implements Executor {
  readonly #primary: Executor;
  readonly #secondary: Executor;
  readonly #mayFallBack: (error: unknown) => boolean;

  constructor(
    primary: Executor,
    secondary: Executor,
    mayFallBack: (error: unknown) => boolean = shouldFallBack,
  ) {
    this.#primary = primary;
    this.#secondary = secondary;
    this.#mayFallBack = mayFallBack;
  }

  async stream(streams: CommandStreams): Promise<CommandEnd> {
    try {
      return await this.#primary.stream(streams);
    } catch (error) {
      if (!this.#mayFallBack(error)) throw error;
      return this.#secondary.stream(streams);
    }
  }
}

/**
 * Whether client-go tries SPDY after this: a complete HTTP answer that is no good 101, or a WebSocket library that cannot
 * speak to an HTTPS proxy. Not a failure of TCP, TLS or time, and nothing after a 101.
 */
export function shouldFallBack(error: unknown): boolean {
  if (error instanceof ConnectError && error.isUpgradeFailure) return true;
  return error instanceof Error && error.message.includes("proxy: unknown scheme: https");
}

function requestedOf({ stdin, stdout, stderr, tty = false }: CommandStreams): RequestedStreams {
  return {
    stdin: stdin !== undefined,
    stdout: stdout !== undefined,
    stderr: stderr !== undefined && !tty,
    tty,
  };
}

function dialRequest(
  transport: DialRequest["transport"],
  path: CommandPath,
  protocols: readonly string[],
  streams: CommandStreams,
  { dialTimeoutMs, responseHeaderTimeoutMs }: ExecutorOptions,
): DialRequest {
  return {
    path: path(requestedOf(streams)),
    transport,
    protocols,
    signal: streams.signal,
    dialTimeoutMs,
    responseHeaderTimeoutMs,
  };
}

/** client-go takes a response without a protocol for v1, which loses failures. */
function versionOf(
  { protocol, socket }: UpgradedConnection,
  offered: readonly RemoteCommandVersion[],
): RemoteCommandVersion {
  if (isRemoteCommandVersion(protocol) && offered.includes(protocol)) return protocol;
  socket.destroy();
  const supported = offered.map((version) => JSON.stringify(version)).join(", ");
  const text = `unable to negotiate protocol: client supports ${supported}, server returned ${JSON.stringify(protocol)}`;
  throw new ConnectError("handshake", text, { httpStatus: 101 });
}
