import { once } from "node:events";
import type { Http2Session, Http2Stream } from "node:http2";
import { connect, createServer, type Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { Http2Downstream } from "../../../src/http/downstream/http2-downstream.ts";
import { Http2Connections, type Http2Request } from "../../../src/listeners/http2-connections.ts";
import { defaultLimits } from "../../support/default-configuration.ts";
import { closeServer, listen } from "../../support/http/loopback.ts";
import { connectHttp2 } from "../../support/http2-client.ts";

/** node:http2's timer of a stream or session: while it runs, it keeps all of the connection's memory. */
function timerOf(owner: Http2Session | Http2Stream): { readonly _destroyed: boolean } | undefined {
  const symbol = Object.getOwnPropertySymbols(owner).find(({ description }) => description === "timeout");
  return symbol && Reflect.get(owner, symbol);
}

it("no timer outlives a connection that its client resets, with its streams", async () => {
  const owners: (Http2Session | Http2Stream)[] = [];
  const timers: unknown[] = [];
  const ended: Promise<unknown>[] = [];
  const onRequest = ({ stream, pseudo, rawHeaders }: Http2Request): void => {
    const downstream = new Http2Downstream(stream, pseudo, rawHeaders);
    downstream.respond(200, "", [], [Buffer.alloc(200_000)]);
    downstream.expectTaking(60_000);
    for (const owner of [stream, stream.session as Http2Session]) {
      owners.push(owner);
      timers.push(timerOf(owner));
      ended.push(once(owner, "close").catch(() => {}));
    }
  };
  const connections = new Http2Connections(
    defaultLimits,
    { onRequest, onConnect: () => {} },
    { takingMs: 60_000, headMs: 60_000 },
  );
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    connections.accept(socket);
  });
  onTestFinished(() => closeServer(server, sockets));
  const port = await listen(server);
  const raw = connect(port, "127.0.0.1").on("error", () => {});
  const client = await connectHttp2(`http://127.0.0.1:${port}`, { createConnection: () => raw });
  const stream = client.request({ ":path": "/" });
  stream.on("error", () => {});
  await once(stream, "data");
  raw.resetAndDestroy();
  await Promise.all(ended);
  expect(owners.map(({ destroyed }) => destroyed)).toEqual([true, true]);
  expect(timers).toEqual([
    expect.objectContaining({ _destroyed: true }),
    expect.objectContaining({ _destroyed: true }),
  ]);
});
