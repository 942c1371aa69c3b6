import { readUint16, readUint32 } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";
import { MAX_PROXY_HEADER_BYTES } from "./limits.ts";
import type { ProxyHeader, ProxyPeer } from "./proxy-header.ts";

/** Castagnoli's polynomial, bit-reversed (RFC 3309 appendix B). */
const POLYNOMIAL = 0x82f63b78;
let remainders: Uint32Array | undefined;

/** CRC-32C as an unsigned integer. */
export function crc32c(bytes: Uint8Array): number {
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
export const SIGNATURE = new Uint8Array([13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]);

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
export function decodeBinaryHeader(bytes: Uint8Array): ProxyHeader | undefined {
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
