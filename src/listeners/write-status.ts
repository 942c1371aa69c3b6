import { type Status, statusBody, statusHeaders } from "../api/status.ts";
import type { HttpDownstream } from "../http/http-downstream.ts";
import { writeAnswer } from "./write-answer.ts";

/** Answers a plain request with a Status, or cuts the answer short that had already begun. */
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
