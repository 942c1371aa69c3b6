import { once } from "node:events";
import { WebSocket } from "ws";

/**
 * A client of exec, attach or legacy port-forward over one of the older WebSocket protocols, with
 * `ws`.
 */
export class ChannelClient {
  readonly socket: WebSocket;
  readonly opened: Promise<unknown>;
  /** The close code. */
  readonly closed: Promise<number>;
  /** Messages as they arrived; text is a string. */
  readonly messages: (Buffer | string)[] = [];
  readonly #isBase64: boolean;

  constructor(authority: string, protocol: string | undefined, path: string, query: string) {
    this.#isBase64 = protocol?.includes("base64") ?? false;
    this.socket = new WebSocket(
      `ws://${authority}/api/v1/namespaces/default/pods/web/${path}?${query}`,
      protocol === undefined ? [] : [protocol],
      { perMessageDeflate: false },
    );
    this.socket.on("message", (data: Buffer, isBinary) =>
      this.messages.push(isBinary ? data : data.toString("latin1")),
    );
    this.socket.on("error", () => {});
    this.opened = once(this.socket, "open");
    this.opened.catch(() => {});
    this.closed = new Promise((resolve) => this.socket.once("close", resolve));
  }

  send(channel: number, payload: Uint8Array | string): void {
    const bytes = Buffer.from(payload);
    if (this.#isBase64) this.socket.send(`${channel}${bytes.toString("base64")}`);
    else this.socket.send(Buffer.concat([Buffer.of(channel), bytes]));
  }

  /** The bytes that arrived on this channel. A message in the wrong form does not count. */
  on(channel: number): Buffer {
    const parts = this.messages.flatMap((message) => {
      if (this.#isBase64) {
        if (typeof message !== "string" || message[0] !== String(channel)) return [];
        return [Buffer.from(message.slice(1), "base64")];
      }
      return typeof message !== "string" && message[0] === channel ? [message.subarray(1)] : [];
    });
    return Buffer.concat(parts);
  }
}
