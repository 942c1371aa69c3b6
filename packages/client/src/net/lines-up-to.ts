const LF = 0x0a;

/**
 * Yields whole lines without their line feeds, each valid until the next is requested. Throws
 * `refuse`'s error if a line exceeds `maxBytes` or the last one is cut short.
 */
export async function* linesUpTo(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number,
  refuse: (problem: string) => Error,
): AsyncGenerator<Buffer, void> {
  let started: Buffer[] = [];
  let startedBytes = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, from)) {
      const rest = chunk.subarray(from, end);
      if (startedBytes + rest.byteLength > maxBytes) throw refuse(`has more than ${maxBytes} bytes`);
      yield started.length === 0 ? rest : Buffer.concat([...started, rest]);
      started = [];
      startedBytes = 0;
      from = end + 1;
    }
    if (from === chunk.byteLength) continue;
    startedBytes += chunk.byteLength - from;
    if (startedBytes > maxBytes) throw refuse(`has more than ${maxBytes} bytes`);
    // The connection may reuse the chunk's memory.
    started.push(Buffer.from(chunk.subarray(from)));
  }
  if (startedBytes > 0) throw refuse("is cut short");
}
