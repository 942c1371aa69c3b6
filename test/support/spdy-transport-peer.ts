import { createRequire } from "node:module";
import type { Duplex } from "node:stream";

// spdy-transport 3.0.0 speaks SPDY as browsers did. For Kubernetes' dialect it needs three changes:
// it must accept SYN_STREAMs without :method and :path, SYN_REPLYs without :status, and must not
// wait for WINDOW_UPDATEs.

interface Transport {
  connection: {
    create(socket: Duplex, options: { protocol: "spdy"; isServer: boolean }): SpdyTransportConnection;
  };
}

export interface SpdyTransportStream extends Duplex {
  readonly headers: Readonly<Record<string, string>>;
  respond(status: number, headers: Readonly<Record<string, string>>): void;
  abort(code: string): void;
}

export interface SpdyTransportConnection {
  start(version: number): void;
  request(
    options: { method: string; path: string; host: string; headers: Readonly<Record<string, string>> },
    callback?: (error: Error | null) => void,
  ): SpdyTransportStream;
  ping(callback: () => void): void;
  end(): void;
  on(event: "stream", listener: (stream: SpdyTransportStream) => void): this;
  on(event: "error" | "close" | "goaway", listener: (reason: unknown) => void): this;
}

const transport: Transport = createRequire(import.meta.url)("spdy-transport");

/** An independent SPDY/3.1 peer on a socket whose upgrade is done. */
export function spdyTransportPeer(socket: Duplex, role: "client" | "server"): SpdyTransportConnection {
  const connection = transport.connection.create(socket, { protocol: "spdy", isServer: role === "server" });
  connection.start(3.1);
  acceptBareHeaders(connection);
  withoutWindows(connection);
  return connection;
}

/** Only its private state allows these changes. */
interface Internals {
  _spdyState: {
    parser: {
      parseKVs(
        block: unknown,
        callback: (error: Error | null, headers: Record<string, string>) => void,
      ): void;
    };
    window: { send: { update(size: number, callback?: () => void): void } };
    needResponse: boolean;
  };
}

function acceptBareHeaders(connection: SpdyTransportConnection): void {
  const { parser } = (connection as unknown as Internals)._spdyState;
  const parse = parser.parseKVs;
  parser.parseKVs = function (block, callback) {
    parse.call(this, block, (error, headers) =>
      callback(error, error === null ? { ":method": "POST", ":path": "/", ...headers } : headers),
    );
  };
}

function withoutWindows(connection: SpdyTransportConnection): void {
  const unlimited = (target: unknown) => {
    (target as Internals)._spdyState.window.send.update = (_size, callback) => {
      if (callback !== undefined) process.nextTick(callback);
    };
  };
  unlimited(connection);
  connection.on("stream", unlimited);
  const request = connection.request;
  connection.request = function (options, callback) {
    const stream = request.call(this, options, callback);
    (stream as unknown as Internals)._spdyState.needResponse = false;
    unlimited(stream);
    return stream;
  };
}
