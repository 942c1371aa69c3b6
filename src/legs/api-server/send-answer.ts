import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { ApiAnswer } from "../../api/read-only-server/api-answer.ts";
import { waitForDrain } from "../../listeners/wait-for-drain.ts";
import { writeAnswer } from "../../listeners/write-answer.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";

/** For audit. A watch has no single answer to record. */
export function recordAnswer({ body, headers }: ApiAnswer, { trail }: IncomingStreaming): void {
  const isJson = headers["Content-Type"]?.startsWith("application/json");
  if (isJson && body instanceof Uint8Array) trail?.responding(body);
}

/** Writes an answer; resolves when a watch ends or its client has left. */
export async function sendAnswer(
  { status, headers, body }: ApiAnswer,
  downstream: HttpDownstream,
): Promise<void> {
  const lines = Object.entries(headers);
  if (body instanceof Uint8Array) return writeAnswer(downstream, status, lines, body);
  // Sends each watch event at once. Releases the source when the client leaves, or has left during
  // authentication.
  const sink = downstream.respond(status, "OK", [...lines, ["Date", new Date().toUTCString()]]);
  const iterator = body[Symbol.asyncIterator]();
  downstream.onClose(() => void iterator.return?.());
  for (;;) {
    const { value, done } = await iterator.next();
    if (done || sink.destroyed) break;
    if (!sink.write(value)) await waitForDrain(sink);
  }
  downstream.finish([]);
}
