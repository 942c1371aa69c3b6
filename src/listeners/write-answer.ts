import { STATUS_CODES } from "node:http";
import { type Status, statusBody, statusHeaders } from "../api/status.ts";
import type { HttpDownstream } from "../http/downstream/http-downstream.ts";
import type { HeaderLine, HeaderList } from "../http/header-list.ts";

/** Writes a whole answer of the gateway's own, with Content-Length and Date. */
export function writeAnswer(
  downstream: HttpDownstream,
  status: number,
  headers: HeaderList,
  body: Uint8Array,
): void {
  const lines: HeaderLine[] = [
    ...headers,
    ["Content-Length", String(body.byteLength)],
    ["Date", new Date().toUTCString()],
  ];
  const hasBody = downstream.method !== "HEAD" && body.byteLength > 0;
  downstream.respondWhole(status, STATUS_CODES[status] ?? "", lines, hasBody ? [body] : [], []);
}

/** Answers a plain request with a Status, or aborts an answer that has already begun. */
export function writeStatus(downstream: HttpDownstream, status: Status): void {
  if (downstream.hasResponded) {
    downstream.abort();
    return;
  }
  writeAnswer(
    downstream,
    status.code,
    Object.entries(statusHeaders(status)),
    Buffer.from(statusBody(status)),
  );
}
