// @sluice/client/browser: exec, attach and ports for programs that have the global WebSocket and nothing of Node's

import {
  dataChannelOf,
  errorChannelOf,
  LEGACY_SUBPROTOCOLS,
  PORT_PREFIX_BYTES,
} from "@sluice/protocols/portforward";
import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import { BrowserCommand, type BrowserStreams } from "./browser-command.ts";
import {
  type BrowserCluster,
  channelMessage,
  MAX_UNTAKEN_BYTES,
  openBrowserSocket,
  sendInput,
} from "./browser-socket.ts";
import type { CommandEnd } from "./command-end.ts";
import { ConnectError } from "./http/upstream/connect-error.ts";
import { attachPath, type CommandPath, execPath, type PodReference, portForwardPath } from "./pod-paths.ts";
import { SessionError } from "./sessions/session-error.ts";

export type { TerminalSize } from "@sluice/protocols/remotecommand";
export type { BrowserStreams } from "./browser-command.ts";
export type { BrowserCluster } from "./browser-socket.ts";
export type { CommandEnd } from "./command-end.ts";
export { ConnectError, type ConnectErrorDetails, type ConnectLeg } from "./http/upstream/connect-error.ts";
export type { PodReference } from "./pod-paths.ts";
export { SessionError, type SessionErrorCode } from "./sessions/session-error.ts";

/** A server's error is one sentence; the rest is dropped. */
const MAX_ERROR_BYTES = 4 * 1024;
const NORMAL_CLOSE = 1000;
const DATA = dataChannelOf(0);
const ERROR = errorChannelOf(0);

type BrowserContainer = Omit<PodReference, "namespace"> & { readonly namespace?: string | undefined };

/**
 * Runs a command in a container by the browser's WebSocket. Resolves with the exit code, also if it
 * is not 0. Throws ConnectError, without the reason, which browsers keep from pages, and SessionError.
 */
export async function exec(
  cluster: BrowserCluster,
  container: BrowserContainer,
  command: readonly string[],
  streams: BrowserStreams = {},
): Promise<CommandEnd> {
  return await run(cluster, execPath(named(cluster, container), command), streams);
}

/**
 * Joins the main process of a container: `streams.tty` says whether the container has a terminal.
 * Resolves with the exit code when the process ends; `streams.signal` leaves it. Throws as exec.
 */
export async function attach(
  cluster: BrowserCluster,
  container: BrowserContainer,
  streams: BrowserStreams = {},
): Promise<CommandEnd> {
  return await run(cluster, attachPath(named(cluster, container)), streams);
}

function named(cluster: BrowserCluster, container: BrowserContainer): PodReference {
  return { ...container, namespace: container.namespace ?? cluster.namespace ?? "default" };
}

async function run(cluster: BrowserCluster, path: CommandPath, streams: BrowserStreams): Promise<CommandEnd> {
  const tty = streams.tty === true;
  const requested: RequestedStreams = {
    stdin: streams.stdin !== undefined,
    stdout: streams.stdout !== undefined,
    stderr: streams.stderr !== undefined && !tty,
    tty,
  };
  return await new BrowserCommand(cluster, path(requested), streams).run();
}

/** A connection to a port of a pod. */
export interface BrowserPort {
  /** Ends when the pod ends the connection. Fails with SessionError. Cancelling it ends the connection. */
  readonly readable: ReadableStream<Uint8Array>;
  /** Its end is not sent: Kubernetes' WebSocket protocol has none. Aborting it ends the connection. */
  readonly writable: WritableStream<Uint8Array>;
}

/**
 * Connects a page to a port of a pod, over Kubernetes' WebSocket protocol without SPDY. Throws
 * ConnectError, without the reason, which browsers keep from pages.
 */
export async function openPort(
  cluster: BrowserCluster,
  pod: Omit<PodReference, "namespace" | "container"> & { readonly namespace?: string | undefined },
  port: number,
  { signal }: { readonly signal?: AbortSignal | undefined } = {},
): Promise<BrowserPort> {
  if (signal?.aborted) throw new ConnectError("aborted", "context canceled");
  const namespace = pod.namespace ?? cluster.namespace ?? "default";
  const path = `${portForwardPath({ ...pod, namespace })}?ports=${port}`;
  const [protocol] = LEGACY_SUBPROTOCOLS;
  const socket = openBrowserSocket(cluster, path, [protocol]);
  const connection = streamsOf(socket, signal);
  const waiting = new AbortController();
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = (): void =>
        reject(
          signal?.aborted
            ? new ConnectError("aborted", "context canceled")
            : new ConnectError("handshake", "the WebSocket did not open; its page is not told why"),
        );
      socket.addEventListener("open", () => resolve(), waiting);
      socket.addEventListener("close", fail, waiting);
      signal?.addEventListener("abort", fail, waiting);
    });
  } finally {
    waiting.abort();
  }
  return connection;
}

/** Both directions of a socket with one port. */
function streamsOf(socket: WebSocket, signal: AbortSignal | undefined): BrowserPort {
  const errorText: number[] = [];
  const seen = new Map([
    [DATA, 0],
    [ERROR, 0],
  ]);
  let end: (error?: SessionError) => void = () => {};
  const readable = new ReadableStream<Uint8Array>(
    {
      start: (output) => {
        end = endOf(socket, output, signal);
        socket.onmessage = ({ data }) => {
          const { channel, part } = channelMessage(data) ?? {};
          if (channel === undefined || part === undefined) {
            end(new SessionError("protocol-error", "unexpected message type: 1"));
            return;
          }
          const bytesBefore = seen.get(channel) ?? 0;
          seen.set(channel, bytesBefore + part.byteLength);
          // Each channel names its port first.
          const rest = part.subarray(Math.max(0, PORT_PREFIX_BYTES - bytesBefore));
          if (channel === ERROR) errorText.push(...rest.subarray(0, MAX_ERROR_BYTES - errorText.length));
          else if (channel === DATA && rest.byteLength > 0) output.enqueue(rest);
          if ((output.desiredSize ?? 0) < 0)
            end(new SessionError("output-failed", "the output is not taken as fast as it comes"));
        };
        socket.onclose = ({ code, reason }) => {
          const text = new TextDecoder().decode(Uint8Array.from(errorText));
          if (text !== "") end(new SessionError("remote-failure", text));
          else if (code === NORMAL_CLOSE) end();
          else end(new SessionError("connection-lost", `websocket: close ${code}: ${reason}`));
        };
      },
      cancel: () => end(),
    },
    { highWaterMark: MAX_UNTAKEN_BYTES, size: ({ byteLength }) => byteLength },
  );
  const writable = new WritableStream<Uint8Array>({
    write: async (part) => {
      await sendInput(socket, DATA, part);
      if (socket.readyState > 1) throw new SessionError("remote-closed", "the connection is closed");
    },
    abort: () => end(new SessionError("aborted", "context canceled")),
  });
  return { readable, writable };
}

/** Ends a connection once, for a reason or because all has been received. */
function endOf(
  socket: WebSocket,
  output: ReadableStreamDefaultController<Uint8Array>,
  signal: AbortSignal | undefined,
): (error?: SessionError) => void {
  const end = (error?: SessionError): void => {
    signal?.removeEventListener("abort", onAbort);
    socket.onmessage = socket.onclose = null;
    socket.close();
    try {
      if (error === undefined) output.close();
      else output.error(error);
    } catch {
      // The page has cancelled it.
    }
  };
  const onAbort = (): void => end(new SessionError("aborted", "context canceled"));
  signal?.addEventListener("abort", onAbort, { once: true });
  return end;
}
