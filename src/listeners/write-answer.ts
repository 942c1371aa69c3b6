import { STATUS_CODES } from "node:http";
import type { Writable } from "node:stream";
import { type Status, statusBody, statusHeaders } from "@sluice/client/internal/api/status";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { HeaderLine, HeaderList } from "@sluice/client/internal/http/header-list";

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

/** Resolves when the client has taken the written bytes, or has left. Removes its listeners. */
export function waitForDrain(response: Writable): Promise<void> {
  if (response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = (): void => {
      response.off("drain", settle).off("close", settle);
      resolve();
    };
    response.on("drain", settle).on("close", settle);
  });
}
