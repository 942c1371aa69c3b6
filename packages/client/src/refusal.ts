import type { Readable } from "node:stream";
import { decodeStatus } from "@sluice/protocols/remotecommand";
import type { ConnectError } from "./http/upstream/connect-error.ts";

/**
 * A refusal's body: a Status is a few hundred bytes, a proxy's HTML page may be long. Past it the
 * rest is not read.
 */
const MAX_REFUSAL_BYTES: number = 64 * 1024;
/** The quoted part of a refusal that is not a Status, as in gorilla. Past it the text is cut. */
const MAX_QUOTED_REFUSAL_CHARACTERS = 1024;

/**
 * Reads the start of a refusal's body, then destroys the body. If the body breaks off, returns the
 * bytes so far.
 */
export async function readRefusal(body: Readable): Promise<Buffer> {
  const parts: Buffer[] = [];
  let byteLength = 0;
  try {
    for await (const part of body) {
      const taken = (part as Buffer).subarray(0, MAX_REFUSAL_BYTES - byteLength);
      parts.push(taken);
      byteLength += taken.byteLength;
      if (byteLength >= MAX_REFUSAL_BYTES) break;
    }
  } catch {
    // People read the text; a part is better than nothing.
  }
  body.destroy();
  return Buffer.concat(parts);
}

export function apiStatusIn(body: Uint8Array): ConnectError["apiStatus"] {
  const status = decodeStatus(body);
  if (status === undefined) return undefined;
  const { message, reason, code } = status;
  return {
    status: status.status,
    ...(message !== undefined && { message }),
    ...(reason !== undefined && { reason }),
    ...(code !== undefined && { code }),
  };
}

/** The body as text for a message; removes line breaks but one, and terminal controls. */
export function quotedRefusal(body: Uint8Array): string {
  const text = printable(new TextDecoder().decode(body)).trim();
  return text.length <= MAX_QUOTED_REFUSAL_CHARACTERS
    ? text
    : `${text.slice(0, MAX_QUOTED_REFUSAL_CHARACTERS)}...`;
}

/** Removes controls, so that a server cannot write to a user's terminal. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the controls are what is removed
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "");
}
