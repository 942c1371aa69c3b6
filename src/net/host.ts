import { isIP } from "node:net";

/** Longest name that the DNS has (RFC 1035 section 2.3.4), without a dot at its end. */
const MAX_NAME_CHARACTERS = 253;
const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
/** RFC 1123 section 2.1, in either case; a dot at the end makes it absolute. */
const HOST_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*\\.?$`, "i");

/** Whether a text is an IP address or a host name: all that is dialled, looked up, or written into a request for a proxy. */
export function isHost(text: string): boolean {
  return isIP(text) !== 0 || (text.length <= MAX_NAME_CHARACTERS + 1 && HOST_NAME.test(text));
}
