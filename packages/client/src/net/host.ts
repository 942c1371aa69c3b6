import { isIP } from "node:net";

/** The DNS's longest name (RFC 1035 section 2.3.4), without a final dot. */
const MAX_NAME_CHARACTERS = 253;
const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** RFC 1123 section 2.1, in either case; a final dot makes the name absolute. */
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*\\.?$`, "i");

/**
 * True for an IP address or a host name. Everything that is dialled, looked up or sent to a proxy must
 * be one.
 */
export function isHost(text: string): boolean {
  return isIP(text) !== 0 || (text.length <= MAX_NAME_CHARACTERS + 1 && HOST_NAME.test(text));
}
