import type { Readable } from "node:stream";

/** An answer exceeds the size limit. */
export class AnswerTooLargeError extends Error {
  override readonly name = "AnswerTooLargeError";
}

/**
 * Reads an answer's whole body. Throws AnswerTooLargeError beyond `maxBytes`, or the connection's
 * error if it breaks off; the connection is then unusable.
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
