import { connect as connectHttp2, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { connect } from "node:net";
import { defaultHttp1Limits, ResponseDecoder, type ResponseHead } from "../../protocols/http1/index.ts";

/** A client's view of one answer. Status 0: there was none. */
export interface Answered {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly interims: readonly number[];
  readonly body: string;
  /** True if the answer arrived to its end and the end was valid. */
  readonly isWhole: boolean;
}

export interface AnsweredClient {
  get(host: string, path?: string): Promise<Answered>;
  close(): void;
}

/** Room for interim answers up to the gateway's own bound, and for its 502 after them. */
const LIMITS = { ...defaultHttp1Limits, maxHeadBytes: 2 * defaultHttp1Limits.maxHeadBytes };

/**
 * A client that reads all that HTTP/1.1 allows, which is more than Node's client does. Opens a
 * connection for each request. `lines`: further lines of each request.
 */
export function http1Client(port: number, lines: readonly string[] = []): AnsweredClient {
  return {
    get: (host, path = "/") =>
      new Promise((resolve) => {
        const socket = connect(port, "127.0.0.1");
        let head: ResponseHead | undefined;
        const interims: number[] = [];
        const parts: Buffer[] = [];
        let isWhole = false;
        const decoder = new ResponseDecoder<Buffer>(
          {
            onInterim: ({ status }) => void interims.push(status),
            onHead: (given) => {
              head = given;
            },
            onBody: (part) => void parts.push(part),
            onEnd: () => {
              isWhole = true;
              socket.destroy();
            },
          },
          { limits: LIMITS },
        );
        decoder.expect("GET");
        socket.on("data", (chunk: Buffer) => {
          try {
            decoder.push(chunk);
          } catch {
            socket.destroy();
          }
        });
        socket.on("end", () => void decoder.end());
        socket.on("error", () => {});
        socket.on("close", () =>
          resolve({
            status: head?.status ?? 0,
            headers: linesByName(head?.headers ?? []),
            interims,
            body: Buffer.concat(parts).toString("latin1"),
            isWhole,
          }),
        );
        const asked = [`GET ${path} HTTP/1.1`, `Host: ${host}`, "TE: trailers", ...lines];
        socket.write(`${asked.join("\r\n")}\r\n\r\n`);
      }),
    close: () => {},
  };
}

/**
 * Node's HTTP/2 client, with prior knowledge or by ALPN. Uses one connection for all requests as
 * long as it lives. `more`: further fields of each request.
 */
export function http2Client(authority: string, more: OutgoingHttpHeaders = {}): AnsweredClient {
  let session: ReturnType<typeof connectHttp2> | undefined;
  const open = (): ReturnType<typeof connectHttp2> => {
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    session = connectHttp2(authority, { rejectUnauthorized: false });
    session.on("error", () => {});
    return session;
  };
  return {
    get: (host, path = "/") =>
      new Promise((resolve) => {
        const stream = open().request({ ":path": path, ":authority": host, te: "trailers", ...more });
        let headers: IncomingHttpHeaders = {};
        let raw: readonly string[] = [];
        const interims: number[] = [];
        const parts: Buffer[] = [];
        let hasEnded = false;
        stream.on("headers", (given) => void interims.push(Number(given[":status"])));
        stream.on("response", (given, _flags, rawHeaders?: string[]) => {
          headers = given;
          raw = rawHeaders ?? [];
        });
        stream.on("data", (part: Buffer) => parts.push(part));
        stream.on("end", () => {
          hasEnded = true;
        });
        stream.on("error", () => {});
        stream.on("close", () =>
          resolve({
            status: Number(headers[":status"] ?? 0),
            headers: linesByName(raw),
            interims,
            body: Buffer.concat(parts).toString("latin1"),
            // A client whose CONNECT is refused leaves its half open; the server resets that
            // without an error.
            isWhole: hasEnded && stream.rstCode === 0 && (!stream.aborted || more[":method"] === "CONNECT"),
          }),
        );
      }),
    close: () => session?.destroy(),
  };
}

function linesByName(flat: readonly string[]): ReadonlyMap<string, string> {
  const lines = new Map<string, string>();
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = (flat[at] as string).toLowerCase();
    const earlier = lines.get(name);
    lines.set(name, earlier === undefined ? (flat[at + 1] as string) : `${earlier}, ${flat[at + 1]}`);
  }
  return lines;
}
