import { genericError, StatusError } from "@sluice/client/internal/api/status";
import { statusOfBody } from "@sluice/client/internal/api/status-body";
import type { RefusedUpgrade } from "@sluice/client/internal/http/upgrade/upgrade-request";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";

/** The Status in the refusal's body, or a new Status with the body's text. */
export async function refusalErrorOf(refused: RefusedUpgrade, maxBodyBytes: number): Promise<StatusError> {
  return statusErrorOf(refused.status, await textOf(refused, maxBodyBytes));
}

function statusErrorOf(code: number, text: string): StatusError {
  const status = statusOfBody(text);
  if (status !== undefined && status.code >= 400) return new StatusError(status);
  return text.trim() === ""
    ? WIRE_ERRORS["node-refused"].streaming({ code })
    : genericError(code, text.trim());
}

/** The beginning of the body. If the body breaks off, the part that came is used. */
async function textOf({ body }: RefusedUpgrade, maxBodyBytes: number): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of body as AsyncIterable<Buffer>) {
      parts.push(part);
      length += part.byteLength;
      if (length >= maxBodyBytes) break;
    }
  } catch {
    // The status line is enough.
  }
  body.destroy();
  return Buffer.concat(parts).subarray(0, maxBodyBytes).toString("utf8");
}
