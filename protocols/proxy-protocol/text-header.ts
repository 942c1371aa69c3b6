import { ProtocolError } from "../protocol-error.ts";
import { isIPv4, isIPv6 } from "./ip-address.ts";
import { MAX_PROXY_LINE_BYTES } from "./limits.ts";
import type { ProxyHeader } from "./proxy-header.ts";

export const TEXT_BEGINNING = Uint8Array.from("PROXY ", (character) => character.charCodeAt(0));

const CR = 0x0d;
const LF = 0x0a;
/** The proxy does not know the peer; receivers ignore the rest of the line (section 2.1). */
const UNKNOWN = /^PROXY UNKNOWN(?: .*)?$/s;
const KNOWN = /^PROXY (TCP4|TCP6) ([0-9A-Fa-f:.]+) ([0-9A-Fa-f:.]+) (\d{1,5}) (\d{1,5})$/;
const MAX_PORT = 65_535;

/**
 * Decodes version 1, which is one line (section 2.1). Undefined while it is incomplete; throws
 * ProtocolError.
 */
export function decodeTextHeader(bytes: Uint8Array): ProxyHeader | undefined {
  const compared = Math.min(bytes.length, TEXT_BEGINNING.length);
  for (let index = 0; index < compared; index++) {
    if (bytes[index] !== TEXT_BEGINNING[index]) throw malformed("no PROXY protocol header");
  }
  const searched = bytes.subarray(0, MAX_PROXY_LINE_BYTES);
  const end = searched.indexOf(LF);
  if (end === -1) {
    if (bytes.length < MAX_PROXY_LINE_BYTES) return undefined;
    throw new ProtocolError("frame-too-large", `a header line of more than ${MAX_PROXY_LINE_BYTES} bytes`);
  }
  if (bytes[end - 1] !== CR) throw malformed("a header line that does not end in CRLF");
  const line = String.fromCharCode(...bytes.subarray(0, end - 1));
  const byteLength = end + 1;
  if (UNKNOWN.test(line)) return { peer: undefined, byteLength };
  const [, family, source = "", destination = "", sourcePort = "", destinationPort = ""] =
    KNOWN.exec(line) ?? [];
  const isAddress = family === "TCP4" ? isIPv4 : isIPv6;
  if (family === undefined || !isAddress(source) || !isAddress(destination))
    throw malformed("a header line without two addresses and two ports");
  const port = portOf(sourcePort);
  portOf(destinationPort);
  return { peer: { address: source, port }, byteLength };
}

function portOf(text: string): number {
  const port = Number(text);
  if (port > MAX_PORT || String(port) !== text) throw malformed("a header line with an invalid port");
  return port;
}

function malformed(message: string): ProtocolError {
  return new ProtocolError("malformed-frame", message);
}
