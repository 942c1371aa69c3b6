import type { ServerResponse } from "node:http";
import { type Status, statusBody } from "../api/status.ts";

/** Answers a plain request with a Status, or cuts the connection when the answer had already begun. */
export function writeStatus(response: ServerResponse, status: Status): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const body = Buffer.from(statusBody(status));
  const retryAfter = status.details?.retryAfterSeconds;
  response.writeHead(status.code, {
    "Content-Type": "application/json",
    "Content-Length": body.byteLength,
    ...(retryAfter !== undefined && { "Retry-After": String(retryAfter) }),
    ...(status.code === 401 && { "Www-Authenticate": 'Bearer realm="kubernetes"' }),
  });
  response.end(body);
}
