import {
  isRemoteCommandVersion,
  type RemoteCommandVersion,
  type RequestedStreams,
} from "@sluice/protocols/remotecommand";
import type { CommandEnd } from "./command-end.ts";
import { CommandRun, type CommandStreams } from "./command-run.ts";
import { type DialRequest, dial, shouldFallBack, type UpgradedConnection } from "./connect.ts";
import { dialWith } from "./dial-with.ts";
import { ConnectError } from "./http/upstream/connect-error.ts";
import type { CommandPath } from "./pod-paths.ts";
import { defaultSessionTimes, type ResumeOptions, type SessionTimes } from "./session-times.ts";
import type { Target } from "./target.ts";
import { WebSocketCommandLink } from "./websocket-command-link.ts";

export interface ExecutorOptions {
  /** Heartbeats and waits. Default: client-go's, `defaultSessionTimes`. */
  readonly times?: Partial<SessionTimes> | undefined;
  /** Limit for name lookup, TCP and TLS, in milliseconds. Default: 30,000. */
  readonly dialTimeoutMs?: number | undefined;
  /** Limit for the server's answer to the upgrade, in milliseconds. Default: 30,000. */
  readonly responseHeaderTimeoutMs?: number | undefined;
  /**
   * Lets WebSocket sessions survive lost connections if the server is a Sluice that agrees
   * (protocols/resume); no effect otherwise, nor over SPDY. Off by default; `true` means `{}`.
   */
  readonly resume?: boolean | ResumeOptions | undefined;
}

/** Runs any number of execs and attaches, also at once. */
export interface Executor {
  /**
   * Resolves with the exit code that the server reported; a code other than 0 is no error. Throws
   * ConnectError if no session was established, before it reads any input, and SessionError if a
   * session broke.
   */
  stream(streams: CommandStreams): Promise<CommandEnd>;
}

/** The versions that Kubernetes servers accept. v1 cannot report a failure and is not offered. */
const SPDY_VERSIONS: readonly RemoteCommandVersion[] = [
  "v4.channel.k8s.io",
  "v3.channel.k8s.io",
  "v2.channel.k8s.io",
];
const WEBSOCKET_VERSIONS: readonly RemoteCommandVersion[] = ["v5.channel.k8s.io"];

/** Channels over a WebSocket: API servers since 1.30, and gateways. */
export class WebSocketExecutor implements Executor {
  readonly #target: Target;
  readonly #path: CommandPath;
  readonly #options: ExecutorOptions;
  readonly #versions: readonly RemoteCommandVersion[];

  /** `versions`: best first. Only v5 can end a command's input. */
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
    // Loads SPDY on demand: that takes longer than a small command, and most servers speak
    // WebSocket.
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

/** Tries the first, then the second if the first could not upgrade: see `shouldFallBack`. */
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
