import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { valkeyConnector } from "../../../../src/access/policy/valkey-connection.ts";

// The bound under test.
const MAX_QUOTA_ANSWER_BYTES = 64 * 1024;

const CHUNK = Buffer.alloc(64 * 1024, "x");

/** A store that announces an answer of 512 MB to each command but those of the set-up, and sends as much as is taken. */
async function startLyingStore(isHonestAtFirst: boolean) {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket
      .on("error", () => {})
      .on("data", (part) => {
        const text = part.toString();
        if (isHonestAtFirst && !/evalsha/i.test(text)) {
          socket.write("+OK\r\n".repeat(text.match(/\*\d+\r\n\$\d+/g)?.length ?? 1));
          return;
        }
        socket.write("$536870912\r\n");
        const flood = (): void => {
          while (!socket.destroyed && socket.write(CHUNK));
        };
        socket.on("drain", flood);
        flood();
      });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets };
}

it("an answer without an end is read to the bound, and the store is away", async () => {
  const { url, sockets } = await startLyingStore(true);
  const connect = await valkeyConnector({ url, commandTimeoutMs: 20_000 } as never);
  let closed = 0;
  const connection = await connect(() => {
    closed += 1;
  });
  await expect(connection.run(["key"], ["value"])).rejects.toThrow();
  await expect.poll(() => closed).toBe(1);
  // What the systems of both ends hold is beyond it.
  await expect.poll(() => sockets.every((socket) => socket.destroyed)).toBe(true);
  const sent = sockets.reduce((sum, socket) => sum + socket.bytesWritten, 0);
  expect(sent).toBeGreaterThan(MAX_QUOTA_ANSWER_BYTES);
  expect(sent).toBeLessThan(64 * 1024 * 1024);
});
