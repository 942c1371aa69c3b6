import { ProtocolError } from "../protocol-error.ts";
import { CLOSE_NO_STATUS } from "./constants.ts";

const CLOSE_PROTOCOL_ERROR = 1002;
const CLOSE_INVALID_PAYLOAD = 1007;
const CLOSE_TOO_BIG = 1009;

/** The code with which to close on a peer that made the decoder throw (RFC 6455 section 7.4.1). */
export function closeCodeOf(error: ProtocolError): number {
  if (error.code === "frame-too-large" || error.code === "message-too-large") return CLOSE_TOO_BIG;
  return error.code === "malformed-message" ? CLOSE_INVALID_PAYLOAD : CLOSE_PROTOCOL_ERROR;
}

/** Code and reason of a Close frame; throws ProtocolError for what may not be on the wire (sections 5.5.1, 7.4). */
export function decodeClosePayload(payload: Uint8Array): { code: number; reason: string } {
  if (payload.byteLength === 0) return { code: CLOSE_NO_STATUS, reason: "" };
  if (payload.byteLength === 1) throw new ProtocolError("malformed-frame", "a Close frame carries one byte");
  const code = ((payload[0] as number) << 8) | (payload[1] as number);
  if (!isCodeOnTheWire(code)) throw new ProtocolError("malformed-frame", `close code ${code} is not allowed`);
  try {
    return { code, reason: new TextDecoder("utf-8", { fatal: true }).decode(payload.subarray(2)) };
  } catch {
    throw new ProtocolError("malformed-message", "the reason of a Close frame is not UTF-8");
  }
}

function isCodeOnTheWire(code: number): boolean {
  return (
    (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006) ||
    (code >= 3000 && code <= 4999)
  );
}
