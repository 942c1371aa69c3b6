import { ProtocolError } from "../protocol-error.ts";
import { MAX_PROXY_LINE_BYTES } from "./limits.ts";
import type { ProxyHeader } from "./proxy-header.ts";

const OCTET = /^(?:0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9A-Fa-f]{1,4}$/;
const IPV6_GROUPS = 8;

/** Four numbers without leading zeros. */
export function isIPv4(text: string): boolean {
  const octets = text.split(".");
  return octets.length === 4 && octets.every((octet) => OCTET.test(octet) && Number(octet) <= 255);
}

/** RFC 4291 section 2.2; a zone is refused. */
export function isIPv6(text: string): boolean {
  const [left = "", right, ...rest] = text.split("::");
  if (rest.length > 0) return false;
  const isLeftWhole = right === undefined;
  const before = groupsOf(left, isLeftWhole);
  const after = right === undefined ? 0 : groupsOf(right, true);
  if (before === undefined || after === undefined) return false;
  return isLeftWhole ? before === IPV6_GROUPS : before + after < IPV6_GROUPS;
}

/**
 * The number of 16-bit groups; an IPv4 address at the end counts as two. Undefined if any part is
 * invalid.
 */
function groupsOf(text: string, mayEndInIPv4: boolean): number | undefined {
  if (text === "") return 0;
  const groups = text.split(":");
  const last = groups.pop() as string;
  const endsInIPv4 = mayEndInIPv4 && isIPv4(last);
  if (!endsInIPv4) groups.push(last);
  return groups.every((group) => GROUP.test(group)) ? groups.length + (endsInIPv4 ? 2 : 0) : undefined;
}

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
