import { bearerSubprotocol } from "@sluice/protocols/websocket";

/**
 * Output that the page has not read: a browser cannot stop a server. Past it: `SessionError`
 * "output-failed".
 */
export const MAX_UNTAKEN_BYTES: number = 64 * 1024 * 1024;
/** Input that a browser has not sent. Past it the page's stream is not read. */
const MAX_UNSENT_INPUT_BYTES: number = 1024 * 1024;
/** With header and channel byte a message fills one 32 KiB frame, as Kubernetes peers send. */
const MAX_INPUT_BYTES = 32 * 1024 - 9;
/** How often to check what is unsent, because browsers have no event for it. */
const UNSENT_CHECK_MS = 10;

/** A server that a page connects to, and the page's credentials. */
export interface BrowserCluster {
  /** For example `https://gateway.example.com`. */
  readonly url: string;
  /**
   * Sent as Kubernetes' bearer-token subprotocol. Default: none, and the browser's certificate or
   * cookies authenticate.
   */
  readonly token?: string | undefined;
  /** Default: "default". */
  readonly namespace?: string | undefined;
}

export function openBrowserSocket(
  { url, token }: BrowserCluster,
  path: string,
  protocols: readonly string[],
): WebSocket {
  const offered = token === undefined ? protocols : [...protocols, bearerSubprotocol(token)];
  const socket = new WebSocket(url.replace(/^http/, "ws").replace(/\/$/, "") + path, [...offered]);
  socket.binaryType = "arraybuffer";
  // The close follows.
  socket.onerror = () => {};
  return socket;
}

/** Sends a message for one channel, unless the socket closes. */
export function sendOn(socket: WebSocket, channel: number, part: Uint8Array): void {
  const message = new Uint8Array(part.byteLength + 1);
  message[0] = channel;
  message.set(part, 1);
  if (socket.readyState === 1) socket.send(message);
}

/** Sends input in messages of the right size; resolves when the browser takes more, or the socket closes. */
export async function sendInput(socket: WebSocket, channel: number, input: Uint8Array): Promise<void> {
  for (let at = 0; at < input.byteLength; at += MAX_INPUT_BYTES)
    sendOn(socket, channel, input.subarray(at, at + MAX_INPUT_BYTES));
  while (socket.bufferedAmount > MAX_UNSENT_INPUT_BYTES && socket.readyState === 1)
    await new Promise((resolve) => setTimeout(resolve, UNSENT_CHECK_MS));
}

/** A message's channel and payload; undefined for a message of text. */
export function channelMessage(data: unknown): { channel: number; part: Uint8Array } | undefined {
  if (!(data instanceof ArrayBuffer)) return undefined;
  const bytes = new Uint8Array(data);
  return { channel: bytes[0] ?? 0, part: bytes.subarray(1) };
}
