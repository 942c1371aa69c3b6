import { type RemoteCommandVersion, specOf } from "./versions.ts";

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
