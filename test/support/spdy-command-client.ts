import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { SpdySession, type SpdyStream } from "../../protocols/spdy/index.ts";

export interface SpdyCommandClient {
  readonly response: IncomingMessage;
  readonly socket: Socket;
  readonly spdy: SpdySession;
  readonly streams: Readonly<Record<string, SpdyStream>>;
  /** What was received on each stream. */
  readonly received: Record<string, Buffer[]>;
  /** Streams that the server has finished, in order. */
  readonly fins: string[];
  readonly replies: string[];
  text(stream: string): string;
  /** The status of the server's GOAWAY. */
  readonly goAways: readonly number[];
  /** Resolves when the connection has ended; true: by FIN. */
  readonly ended: Promise<boolean>;
}

export interface SpdyCommandOptions {
  readonly version?: string;
  readonly query?: string;
  readonly subresource?: string;
  /** Default `web`. */
  readonly pod?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Streams to open at once, in this order. */
  readonly streams?: readonly string[];
}

/**
 * An exec or attach over SPDY/3.1, like kubectl before 1.30. Rejects if the answer is not a 101.
 */
export async function startSpdyCommand(
  authority: string,
  {
    version = "v4.channel.k8s.io",
    query = "stdin=true&stdout=true&stderr=true&command=x",
    subresource = "exec",
    pod = "web",
    headers = {},
    streams: wanted = ["error", "stdin", "stdout", "stderr"],
  }: SpdyCommandOptions = {},
): Promise<SpdyCommandClient> {
  const upgrade = request(
    `http://${authority}/api/v1/namespaces/default/pods/${pod}/${subresource}?${query}`,
    {
      method: "POST",
      headers: {
        Connection: "Upgrade",
        Upgrade: "SPDY/3.1",
        "X-Stream-Protocol-Version": version,
        ...headers,
      },
    },
  );
  upgrade.end();
  const refused = once(upgrade, "response").then(async ([response]) => {
    let body = "";
    for await (const chunk of response as IncomingMessage) body += String(chunk);
    throw new Error(`${(response as IncomingMessage).statusCode}: ${body}`);
  });
  const upgraded = once(upgrade, "upgrade") as Promise<[IncomingMessage, Socket]>;
  upgraded.catch(() => {});
  refused.catch(() => {});
  const [response, socket] = await Promise.race([upgraded, refused]);
  const received: Record<string, Buffer[]> = {};
  const fins: string[] = [];
  const replies: string[] = [];
  const goAways: number[] = [];
  const streams: Record<string, SpdyStream> = {};
  const spdy = new SpdySession("client", {
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    onStream: () => 3,
    onGoAway: (_lastGoodStreamId, status) => void goAways.push(status),
  });
  for (const name of wanted) {
    received[name] = [];
    streams[name] = spdy.openStream([["streamtype", name]], {
      onReply: () => void replies.push(name),
      onData: (part, fin) => {
        if (part.byteLength > 0) received[name]?.push(Buffer.from(part));
        if (fin) fins.push(name);
      },
      onEnd: () => {},
    });
  }
  socket.on("data", (chunk: Buffer) => spdy.receive(chunk));
  socket.on("error", () => {});
  let hasFinished = false;
  socket.on("end", () => {
    hasFinished = true;
    socket.end();
  });
  const ended = new Promise<boolean>((resolve) => {
    socket.once("close", () => resolve(hasFinished && socket.errored === null));
  });
  const text = (name: string): string => Buffer.concat(received[name] ?? []).toString("latin1");
  return { response, socket, spdy, streams, received, fins, replies, goAways, text, ended };
}
