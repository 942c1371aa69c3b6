import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { defaultLimits } from "../../src/config/limits.ts";
import { Http2Connections } from "../../src/gateway/http2-connections.ts";
import { ask, connectHttp2 } from "../support/http2-client.ts";
import { closeServer, listen } from "../upstream/loopback.ts";

it("a connection without a stream is closed when it has been idle, one with a silent stream is not", async () => {
  const connections = new Http2Connections(
    defaultLimits,
    {
      onRequest: ({ stream, pseudo }) => {
        stream.respond({ ":status": 200 });
        if (pseudo[":path"] === "/") stream.end("done");
      },
      onConnect: () => {},
    },
    1_000,
  );
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    connections.accept(socket);
  });
  const port = await listen(server);
  onTestFinished(() => closeServer(server, sockets));
  const waiting = await connectHttp2(`http://127.0.0.1:${port}`);
  const stream = waiting.request({ ":path": "/watch" });
  await once(stream, "response");
  const idle = await connectHttp2(`http://127.0.0.1:${port}`);
  const closed = once(idle, "close");
  expect((await ask(idle, "/")).body).toBe("done");
  // The other has been silent for longer.
  await closed;
  expect(waiting.closed).toBe(false);
  stream.close();
  await once(waiting, "close");
});
