import { WebSocket } from "ws";

export interface V5Result {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** The Status JSON of channel 3, "" if none arrived. */
  readonly status: string;
  readonly closeCode: number;
}

/**
 * An exec or attach over `v5.channel.k8s.io` with `ws`: a client that shares no code with the
 * gateway.
 */
export class V5Client {
  readonly socket: WebSocket;
  readonly opened: Promise<void>;
  readonly done: Promise<V5Result>;
  readonly messages: Buffer[] = [];
  pongs = 0;

  constructor(
    /** `host:port`, or a WebSocket that is already open. */
    server: string | WebSocket,
    query = "stdin=true&stdout=true&stderr=true",
    path = "exec",
    headers: Readonly<Record<string, string>> = {},
  ) {
    const url = `ws://${server}/api/v1/namespaces/default/pods/web/${path}?${query}`;
    this.socket =
      typeof server === "string"
        ? new WebSocket(url, "v5.channel.k8s.io", { perMessageDeflate: false, headers })
        : server;
    const channels: Buffer[][] = [[], [], [], []];
    this.socket.on("pong", () => {
      this.pongs += 1;
    });
    this.socket.on("message", (data: Buffer) => {
      this.messages.push(data);
      channels[data[0] as number]?.push(data.subarray(1));
    });
    this.opened = new Promise((resolve, reject) => {
      this.socket.once("open", resolve);
      this.socket.once("error", reject);
    });
    this.opened.catch(() => {});
    this.done = new Promise((resolve) => {
      this.socket.once("close", (closeCode) => {
        const [, stdout = [], stderr = [], status = []] = channels;
        resolve({
          stdout: Buffer.concat(stdout),
          stderr: Buffer.concat(stderr),
          status: Buffer.concat(status).toString(),
          closeCode,
        });
      });
    });
  }

  /** The command's output so far. */
  get text(): string {
    return this.messages
      .filter(([channel]) => channel === 1)
      .map((message) => message.subarray(1).toString())
      .join("");
  }

  send(channel: number, payload: Uint8Array | string): void {
    this.socket.send(Buffer.concat([Buffer.of(channel), Buffer.from(payload)]));
  }

  closeStdin(): void {
    this.socket.send(Buffer.of(255, 0));
  }
}
