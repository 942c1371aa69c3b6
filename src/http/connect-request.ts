import { joinHostPort } from "../net/go-dial-error.ts";
import { isHost } from "../net/host.ts";
import { UpstreamError } from "../net/upstream-error.ts";

/**
 * The head that asks an HTTP proxy for a tunnel (RFC 9110 section 9.3.6). `authorization` is the value of Proxy-Authorization. Throws
 * UpstreamError "dial-failed" for a host that would not stand in it as one word.
 */
export function connectRequest(host: string, port: number, authorization: string | undefined): Buffer {
  requireHost(host);
  const target = joinHostPort(host, port);
  const credentials = authorization === undefined ? "" : `Proxy-Authorization: ${authorization}\r\n`;
  return Buffer.from(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${credentials}\r\n`, "latin1");
}

/** Throws UpstreamError "dial-failed" for what a proxy must not be asked to look up. */
export function requireHost(host: string): void {
  if (isHost(host)) return;
  const quoted = JSON.stringify(host.slice(0, MAX_QUOTED_CHARACTERS));
  throw new UpstreamError("dial-failed", `${quoted} is neither an IP address nor a host name`);
}

const MAX_QUOTED_CHARACTERS = 80;
