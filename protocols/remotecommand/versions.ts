/** The features of each remotecommand subprotocol. A new version is a new row. */
export interface RemoteCommandSpec {
  /** Kubernetes' SPDY servers accept it as X-Stream-Protocol-Version. */
  readonly overSpdy: boolean;
  /** Some WebSocket server accepts it: stream translators accept v5, CRI servers the others. */
  readonly overWebSocket: boolean;
  /** Messages are text: an ASCII digit for the channel, then standard base64 with padding. */
  readonly isBase64: boolean;
  /** SPDY has a resize stream. Over WebSocket, channel 4 exists in every version. */
  readonly hasResize: boolean;
  /** The error stream carries one JSON Status; otherwise it carries text, and nothing at success. */
  readonly hasStatusJson: boolean;
  /** A client may close a channel with [255, channel]. */
  readonly hasClose: boolean;
}

const rows = {
  "v5.channel.k8s.io": {
    overSpdy: false,
    overWebSocket: true,
    isBase64: false,
    hasResize: true,
    hasStatusJson: true,
    hasClose: true,
  },
  "v4.channel.k8s.io": {
    overSpdy: true,
    overWebSocket: true,
    isBase64: false,
    hasResize: true,
    hasStatusJson: true,
    hasClose: false,
  },
  "v3.channel.k8s.io": {
    overSpdy: true,
    overWebSocket: false,
    isBase64: false,
    hasResize: true,
    hasStatusJson: false,
    hasClose: false,
  },
  "v2.channel.k8s.io": {
    overSpdy: true,
    overWebSocket: false,
    isBase64: false,
    hasResize: false,
    hasStatusJson: false,
    hasClose: false,
  },
  "channel.k8s.io": {
    overSpdy: true,
    overWebSocket: true,
    isBase64: false,
    hasResize: false,
    hasStatusJson: false,
    hasClose: false,
  },
  "v4.base64.channel.k8s.io": {
    overSpdy: false,
    overWebSocket: true,
    isBase64: true,
    hasResize: true,
    hasStatusJson: true,
    hasClose: false,
  },
  "base64.channel.k8s.io": {
    overSpdy: false,
    overWebSocket: true,
    isBase64: true,
    hasResize: true,
    hasStatusJson: false,
    hasClose: false,
  },
} as const satisfies Record<string, RemoteCommandSpec>;

export type RemoteCommandVersion = keyof typeof rows;

export const REMOTE_COMMAND_VERSIONS = Object.keys(rows) as readonly RemoteCommandVersion[];

/** The versions a SPDY server accepts, in the order in which its refusal lists them. */
export const SPDY_VERSIONS: readonly RemoteCommandVersion[] = REMOTE_COMMAND_VERSIONS.filter(
  (version) => rows[version].overSpdy,
);

/** The versions a CRI WebSocket server accepts (containerd 1.6 to 2.1; no v2, v3, v5). */
export const CRI_WEBSOCKET_VERSIONS: readonly RemoteCommandVersion[] = REMOTE_COMMAND_VERSIONS.filter(
  (version) => rows[version].overWebSocket && !rows[version].hasClose,
);

export function isRemoteCommandVersion(name: string): name is RemoteCommandVersion {
  return Object.hasOwn(rows, name);
}

export function specOf(version: RemoteCommandVersion): RemoteCommandSpec {
  return rows[version];
}

/**
 * The streams the caller requested. With `tty`, `stderr` has no effect: the terminal merges it into
 * stdout.
 */
export interface RequestedStreams {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/** Value of the `streamtype` header of a SPDY stream. */
export type StreamType = "error" | "stdin" | "stdout" | "stderr" | "resize";

/**
 * A session's SPDY streams, in the order in which client-go opens them. A server waits for exactly
 * these and never serves a client that opens fewer.
 */
export function spdyStreamTypes(requested: RequestedStreams, version: RemoteCommandVersion): StreamType[] {
  const types: StreamType[] = ["error"];
  if (requested.stdin) types.push("stdin");
  if (requested.stdout) types.push("stdout");
  if (requested.stderr && !requested.tty) types.push("stderr");
  if (requested.tty && specOf(version).hasResize) types.push("resize");
  return types;
}
