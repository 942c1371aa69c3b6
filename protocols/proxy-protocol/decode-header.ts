import { decodeBinaryHeader, SIGNATURE } from "./binary-header.ts";
import type { ProxyHeader } from "./proxy-header.ts";
import { decodeTextHeader, TEXT_BEGINNING } from "./text-header.ts";

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
 * ProtocolError for anything else, including a connection without a header.
 */
export function decodeProxyHeader(bytes: Uint8Array): ProxyHeader | undefined {
  return bytes[0] === SIGNATURE[0] ? decodeBinaryHeader(bytes) : decodeTextHeader(bytes);
}

function beginsWith(bytes: Uint8Array, beginning: Uint8Array): boolean | undefined {
  const compared = Math.min(bytes.length, beginning.length);
  for (let index = 0; index < compared; index++) if (bytes[index] !== beginning[index]) return false;
  return compared === beginning.length ? true : undefined;
}
