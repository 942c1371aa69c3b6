import type { Readable } from "node:stream";

/** An answer longer than what we are ready to hold. */
export class AnswerTooLargeError extends Error {
  override readonly name = "AnswerTooLargeError";
}

/**
 * The body of an answer, whole. Throws AnswerTooLargeError past `maxBytes`, and the connection's error when it breaks off; the
 * connection is not used any more then.
 */
export async function wholeBody(response: Readable, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new AnswerTooLargeError(`the answer has more than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
