import { randomBytes } from "node:crypto";
import { buffer, text } from "node:stream/consumers";
import { expect } from "vitest";
import type { PortForwardConnection } from "../../packages/client/src/index.ts";

const MIB = 1024 * 1024;

/**
 * Checks eight concurrent echoes of port 7, the count that port 9 returns after a half-close, and a
 * clean end.
 */
export async function expectManyStreams(connection: PortForwardConnection): Promise<void> {
  const echoes = Array.from({ length: 8 }, async () => {
    const bytes = randomBytes(2 * MIB);
    const stream = connection.openStream(7);
    stream.end(bytes);
    return (await buffer(stream)).equals(bytes);
  });
  expect(await Promise.all(echoes)).toEqual(Array(8).fill(true));
  const sink = connection.openStream(9);
  sink.end(Buffer.alloc(3 * MIB));
  expect(await text(sink)).toContain(String(3 * MIB));
  connection.close();
  expect(await connection.ended).toBeUndefined();
}
