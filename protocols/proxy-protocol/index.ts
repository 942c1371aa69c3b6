import { readUint16, readUint32 } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";

/** The longest line of version 1, with its CRLF (section 2.1). Past it the connection is closed. */
const MAX_PROXY_LINE_BYTES = 107;

/**
 * A header of version 2 with its TLVs; a certificate in one takes 4 KiB, and the length field
 * allows 65,551. Past it the connection is closed.
 */
const MAX_PROXY_HEADER_BYTES = 16 * 1024;

/** The origin of a proxied connection. */
export interface ProxyPeer {
  /** IPv4 or IPv6 as text, without a zone. */
  readonly address: string;
  readonly port: number;
}

export interface ProxyHeader {
  /** Undefined for the proxy's own connection (LOCAL), and for a peer without an IP address. */
  readonly peer: ProxyPeer | undefined;
  /** The length of the header; the connection's own bytes follow. */
  readonly byteLength: number;
}

/**
 * Whether a connection begins with a header of either version; undefined while too few bytes have
 * arrived.
 */
export function beginsProxyHeader(bytes: Uint8Array): boolean | undefined {
  const answers = [TEXT_BEGINNING, SIGNATURE].map((beginning) => beginsWith(bytes, beginning));
  if (answers.includes(true)) return true;
  return answers.includes(undefined) ? undefined : false;
}

/**
 * Decodes the header from all bytes received so far; undefined while more are needed. Throws
 * ProtocolError for any other bytes, including a connection without a header.
 */
export function decodeProxyHeader(bytes: Uint8Array): ProxyHeader | undefined {
  return bytes[0] === SIGNATURE[0] ? decodeBinaryHeader(bytes) : decodeTextHeader(bytes);
}

function beginsWith(bytes: Uint8Array, beginning: Uint8Array): boolean | undefined {
  const compared = Math.min(bytes.length, beginning.length);
  for (let index = 0; index < compared; index++) if (bytes[index] !== beginning[index]) return false;
  return compared === beginning.length ? true : undefined;
}

/** Castagnoli's polynomial, bit-reversed (RFC 3309 appendix B). */
const POLYNOMIAL = 0x82f63b78;
let remainders: Uint32Array | undefined;

/** CRC-32C as an unsigned integer. */
function crc32c(bytes: Uint8Array): number {
  remainders ??= Uint32Array.from({ length: 256 }, (_, byte) => remainderOf(byte));
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (crc >>> 8) ^ (remainders[(crc ^ byte) & 0xff] as number);
  return (crc ^ 0xffffffff) >>> 0;
}

function remainderOf(byte: number): number {
  let remainder = byte;
  for (let bit = 0; bit < 8; bit++)
    remainder = remainder & 1 ? (remainder >>> 1) ^ POLYNOMIAL : remainder >>> 1;
  return remainder;
}

/** The first bytes of a version 2 header; no other protocol starts with them (section 2.2). */
const SIGNATURE = new Uint8Array([13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]);

/** The signature, version and command, family and transport, and the length of the rest. */
const FIXED_BYTES = 16;
const VERSION = 2;
const LOCAL = 0;
const PROXY = 1;
const STREAM = 1;
const MAX_TRANSPORT = 2;
/** Bytes in both addresses and ports together, by address family: UNSPEC, INET, INET6, UNIX. */
const ADDRESS_BYTES = [0, 12, 36, 216];
const INET = 1;
const INET6 = 2;
const CRC32C_TYPE = 0x03;
const CRC32C_BYTES = 4;
const TLV_BYTES = 3;

/** Decodes version 2 (section 2.2). Undefined while it is incomplete; throws ProtocolError. */
function decodeBinaryHeader(bytes: Uint8Array): ProxyHeader | undefined {
  const compared = Math.min(bytes.length, SIGNATURE.length);
  for (let index = 0; index < compared; index++) {
    if (bytes[index] !== SIGNATURE[index]) throw malformed("no PROXY protocol header");
  }
  if (bytes.length < FIXED_BYTES) return undefined;
  const versionAndCommand = bytes[SIGNATURE.length] as number;
  const command = versionAndCommand & 0x0f;
  if (versionAndCommand >>> 4 !== VERSION || command > PROXY)
    throw new ProtocolError("unsupported", "a header of another version, or with another command");
  const byteLength = FIXED_BYTES + readUint16(bytes, FIXED_BYTES - 2);
  if (byteLength > MAX_PROXY_HEADER_BYTES)
    throw new ProtocolError("frame-too-large", `a header of more than ${MAX_PROXY_HEADER_BYTES} bytes`);
  if (bytes.length < byteLength) return undefined;
  // The specification has receivers discard the rest of a LOCAL header.
  if (command === LOCAL) return { peer: undefined, byteLength };
  const header = bytes.subarray(0, byteLength);
  const familyAndTransport = header[SIGNATURE.length + 1] as number;
  const family = familyAndTransport >>> 4;
  const transport = familyAndTransport & 0x0f;
  const addressBytes = ADDRESS_BYTES[family];
  if (addressBytes === undefined || transport > MAX_TRANSPORT)
    throw new ProtocolError("unsupported", "a header with an unknown address family or transport");
  if (FIXED_BYTES + addressBytes > byteLength) throw malformed("a header that is shorter than its addresses");
  checkTlvs(header, FIXED_BYTES + addressBytes);
  return { peer: transport === STREAM ? peerOf(header, family) : undefined, byteLength };
}

function peerOf(header: Uint8Array, family: number): ProxyPeer | undefined {
  if (family === INET) {
    const address = header.subarray(FIXED_BYTES, FIXED_BYTES + 4).join(".");
    return { address, port: readUint16(header, FIXED_BYTES + 8) };
  }
  if (family !== INET6) return undefined;
  const groups = Array.from({ length: 8 }, (_, index) => readUint16(header, FIXED_BYTES + 2 * index));
  const address = groups.map((group) => group.toString(16)).join(":");
  return { address, port: readUint16(header, FIXED_BYTES + 32) };
}

/** Checks the lengths of all TLVs and, if one is a checksum, the checksum. */
function checkTlvs(header: Uint8Array, begin: number): void {
  let checksumAt: number | undefined;
  for (let at = begin; at < header.length; ) {
    if (at + TLV_BYTES > header.length) throw malformed("a header with a TLV that is cut");
    const valueAt = at + TLV_BYTES;
    const next = valueAt + readUint16(header, at + 1);
    if (next > header.length) throw malformed("a header with a TLV that is cut");
    if (header[at] === CRC32C_TYPE) {
      if (next - valueAt !== CRC32C_BYTES || checksumAt !== undefined)
        throw malformed("a header with a checksum of another length, or two");
      checksumAt = valueAt;
    }
    at = next;
  }
  if (checksumAt === undefined) return;
  const expected = readUint32(header, checksumAt);
  const zeroed = new Uint8Array(header);
  zeroed.fill(0, checksumAt, checksumAt + CRC32C_BYTES);
  if (crc32c(zeroed) !== expected) throw malformed("a header with a wrong checksum");
}

function malformed(message: string): ProtocolError {
  return new ProtocolError("malformed-frame", message);
}

const OCTET = /^(?:0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9A-Fa-f]{1,4}$/;
const IPV6_GROUPS = 8;

/** Four numbers without leading zeros. */
function isIPv4(text: string): boolean {
  const octets = text.split(".");
  return octets.length === 4 && octets.every((octet) => OCTET.test(octet) && Number(octet) <= 255);
}

/** RFC 4291 section 2.2; a zone is refused. */
function isIPv6(text: string): boolean {
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

const TEXT_BEGINNING = Uint8Array.from("PROXY ", (character) => character.charCodeAt(0));

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
function decodeTextHeader(bytes: Uint8Array): ProxyHeader | undefined {
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
