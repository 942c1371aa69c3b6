import { decodeStatus } from "@sluice/protocols/remotecommand";
import type { ConnectError } from "./http/upstream/connect-error.ts";

/** The quoted part of a refusal that is not a Status, as in gorilla. Past it the text is cut. */
const MAX_QUOTED_REFUSAL_CHARACTERS = 1024;

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
