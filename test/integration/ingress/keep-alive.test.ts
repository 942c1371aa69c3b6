import { once } from "node:events";
import { connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { FrontDoor } from "../../support/front-door.ts";
import { ask, connectHttp2 } from "../../support/http2-client.ts";

async function start(timeouts: object): Promise<FrontDoor> {
  const door = await FrontDoor.start([], {}, { timeouts });
  onTestFinished(() => door.stop());
  return door;
}

it("idle connections of clients are kept for 75 s where nothing else is said", async () => {
  const { httpPort } = await start({});
  const answer = await fetch(`http://127.0.0.1:${httpPort}/`);
  expect(answer.headers.get("keep-alive")).toBe("timeout=75");
});

it("and are closed after timeouts.keepAlive, over HTTP/1.1 and HTTP/2", async () => {
  const { httpPort } = await start({ keepAlive: "1s" });
  const session = await connectHttp2(`http://127.0.0.1:${httpPort}`);
  const client = connect(httpPort, "127.0.0.1");
  const closed = Promise.all([once(session, "close"), once(client, "close")]);
  expect((await ask(session, "/", { ":authority": "a" })).status).toBe(404);
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const [part] = (await once(client, "data")) as [Buffer];
  expect(part.toString()).toMatch(/^HTTP\/1\.1 404 [\s\S]*Keep-Alive: timeout=1\r\n/);
  await closed;
});
