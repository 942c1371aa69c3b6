import type { IncomingMessage } from "node:http";
import net from "node:net";
import type { Duplex } from "node:stream";

export interface SpliceTarget {
  host: string;
  port: number;
  /** Path and query of the request to the target. */
  path: string;
}

/**
 * Forwards an upgrade request to `target` with all headers but Host, and then joins both
 * connections byte for byte. The client gets the target's answer, even a refusal. Interprets
 * nothing that it carries, so it can hide nothing.
 */
export function spliceUpgrade(
  request: IncomingMessage,
  client: Duplex,
  head: Buffer,
  target: SpliceTarget,
): void {
  const upstream = net.connect({ host: target.host, port: target.port, allowHalfOpen: true, noDelay: true });
  const lines = [`${request.method} ${target.path} HTTP/1.1`];
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index] ?? "";
    const value =
      name.toLowerCase() === "host" ? `${target.host}:${target.port}` : request.rawHeaders[index + 1];
    lines.push(`${name}: ${value}`);
  }
  upstream.write(`${lines.join("\r\n")}\r\n\r\n`);
  upstream.write(head);
  upstream.pipe(client);
  client.pipe(upstream);
  upstream.once("error", () => client.destroy());
  client.once("error", () => upstream.destroy());
  client.once("close", () => upstream.destroy());
}

/** Answers a request that came as an upgrade with an ordinary response, and ends it. */
export function refuseUpgrade(
  client: Duplex,
  code: number,
  reason: string,
  body: string,
  contentType = "text/plain",
): void {
  const length = Buffer.byteLength(body);
  client.end(
    `HTTP/1.1 ${code} ${reason}\r\nContent-Type: ${contentType}\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n${body}`,
  );
}
