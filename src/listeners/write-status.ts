import { type Status, statusBody } from "../api/status.ts";
import type { HeaderLine } from "../http/header-list.ts";
import type { HttpDownstream } from "../http/http-downstream.ts";
import { writeAnswer } from "./write-answer.ts";

/** Answers a plain request with a Status, or cuts the answer short that had already begun. */
export function writeStatus(downstream: HttpDownstream, status: Status): void {
  if (downstream.hasResponded) {
    downstream.abort();
    return;
  }
  writeAnswer(downstream, status.code, statusHeaders(status), Buffer.from(statusBody(status)));
}

/** What a refusal says beside its body. */
export function statusHeaders({ code, details }: Status): HeaderLine[] {
  const headers: HeaderLine[] = [["Content-Type", "application/json"]];
  if (details?.retryAfterSeconds !== undefined) {
    headers.push(["Retry-After", String(details.retryAfterSeconds)]);
  }
  if (code === 401) headers.push(["Www-Authenticate", 'Bearer realm="kubernetes"']);
  return headers;
}
