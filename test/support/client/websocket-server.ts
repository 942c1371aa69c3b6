import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough, Writable } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { Target } from "../../../packages/client/src/target.ts";

export interface TestWebSocketServer {
  readonly target: Target;
  readonly port: number;
  readonly requests: IncomingMessage[];
  close(): Promise<void>;
}

export interface TestWebSocketServerOptions {
  /**
   * The accepted subprotocols; the server chooses the first of the client's offers that is among
   * them.
   */
  readonly protocols?: readonly string[];
  readonly autoPong?: boolean;
}

/** A WebSocket server by another library (`ws`), whose sessions the test scripts. */
export async function startWebSocketServer(
  onSession: (socket: WebSocket, request: IncomingMessage) => void,
  { protocols = ["v5.channel.k8s.io"], autoPong = true }: TestWebSocketServerOptions = {},
): Promise<TestWebSocketServer> {
  const requests: IncomingMessage[] = [];
  const server = new WebSocketServer({
    host: "127.0.0.1",
    port: 0,
    autoPong,
    perMessageDeflate: false,
    verifyClient: ({ req }: { req: IncomingMessage }) =>
      (req.headers["sec-websocket-protocol"] ?? "").split(", ").some((name) => protocols.includes(name)),
    handleProtocols: (offered) => [...offered].find((name) => protocols.includes(name)) ?? false,
  });
  server.on("connection", (socket, request) => {
    requests.push(request);
    socket.on("error", () => {});
    onSession(socket, request);
  });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    target: new Target({ url: `http://127.0.0.1:${port}`, proxy: "none" }),
    port,
    requests,
    close: async () => {
      for (const client of server.clients) client.terminate();
      server.close();
      await once(server, "close");
    },
  };
}

export const SUCCESS = '{"metadata":{},"status":"Success"}';

export function exitStatus(code: number | string): string {
  const details = { causes: [{ reason: "ExitCode", message: String(code) }] };
  const message = `command terminated with exit code ${code}`;
  return JSON.stringify({ metadata: {}, status: "Failure", message, reason: "NonZeroExitCode", details });
}

/** One message on a channel. */
export function onChannel(channel: number, payload: Uint8Array | string): Buffer {
  return Buffer.concat([Buffer.of(channel), Buffer.from(payload)]);
}

/** Sends the status and closes, as a Kubernetes server does. */
export function endSession(socket: WebSocket, status: string = SUCCESS): void {
  socket.send(onChannel(3, status));
  socket.close(1000);
}

/** Collects what is written to it. */
export class Collected extends Writable {
  readonly #parts: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#parts.push(Buffer.from(chunk));
    done();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }

  get text(): string {
    return this.bytes.toString();
  }
}

/** A stream that ends after these bytes. */
export function inputOf(bytes: Uint8Array | string): PassThrough {
  const stream = new PassThrough();
  stream.end(bytes);
  return stream;
}
