import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";

/** An answer instead of an upgrade. */
export interface Refusal {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /**
   * golang.org/x/net/websocket's form: neither Date nor Content-Length; the connection's end ends
   * the body.
   */
  readonly isBare?: boolean;
}

const TEXT = ["Content-Type", "text/plain; charset=utf-8"] as const;
const NO_SNIFFING = ["X-Content-Type-Options", "nosniff"] as const;

/** go-restful's form of an error: the text alone. */
export function textRefusal(status: number, body: string): Refusal {
  return { status, headers: [TEXT], body };
}

/** Go's http.Error: one line of text. Further headers appear in Go's sorted order. */
export function httpError(
  status: number,
  line: string,
  headers: readonly (readonly [string, string])[] = [],
): Refusal {
  const sorted = [TEXT, NO_SNIFFING, ...headers].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return { status, headers: sorted, body: `${line}\n` };
}

/** Answers on an upgrade request's socket and ends the connection, as behind a kubelet's proxy. */
export function refuseUpgrade(socket: Duplex, refusal: Refusal): void {
  const lines = [`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status] ?? ""}`];
  for (const [name, value] of refusal.headers) lines.push(`${name}: ${value}`);
  if (!refusal.isBare) {
    lines.push(`Date: ${new Date().toUTCString()}`, `Content-Length: ${Buffer.byteLength(refusal.body)}`);
  }
  socket.on("error", () => socket.destroy());
  socket.end(`${lines.join("\r\n")}\r\n\r\n${refusal.body}`);
  // Reads the client's remaining bytes, so that they do not turn the answer into a connection
  // reset.
  socket.resume();
  socket.once("end", () => socket.destroy());
}

/** Answers a request that did not ask for an upgrade. */
export function respond(response: ServerResponse, refusal: Refusal): void {
  const headers = [...refusal.headers, ["Content-Length", String(Buffer.byteLength(refusal.body))]];
  response.writeHead(refusal.status, headers.flat() as string[]);
  response.end(refusal.body);
}
