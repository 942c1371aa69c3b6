import { Agent, createServer, get, type Server } from "node:http";
import { expect, it, onTestFinished } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, openFrameClient } from "../../support/frame-peer.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { closeServer, listen } from "../../support/http/loopback.ts";
import { ask, connectHttp2 } from "../../support/http2-client.ts";
import { headerBlockOf } from "../../support/http2-frames.ts";
import { startTestGateway } from "../../support/test-gateway.ts";
import { TWO_NODES } from "../../support/two-nodes.ts";

const BURST = 200;
const OTHER_ADDRESS = "127.0.0.2";

/** A front door before a backend that answers at once and counts. */
async function startDoor(onRequest: (path: string) => void = () => {}): Promise<FrontDoor> {
  const server: Server = createServer((request, response) => {
    onRequest(request.url ?? "");
    response.end("ok");
  });
  onTestFinished(() => closeServer(server, []));
  const services = serviceObjects("app", [{ port: await listen(server) }]);
  const door = await FrontDoor.start([...services, ingressObject("all", { defaultBackend: backend("app") })]);
  onTestFinished(() => door.stop());
  return door;
}

const doorPort = async () => ({ port: (await startDoor()).httpPort, isSecure: false, headers: {} });

async function gatewayPort() {
  const gateway = await startTestGateway(TWO_NODES);
  onTestFinished(() => gateway.stop());
  const headers = { authorization: `Bearer ${gateway.token}` };
  return { port: Number(new URL(gateway.apiServerUrl).port), isSecure: true, headers };
}

const blockOf = (headers: Record<string, string>): Buffer =>
  headerBlockOf({ ":method": "GET", ":scheme": "http", ":path": "/api", ":authority": "x", ...headers });

it.each([
  ["the front door", doorPort],
  ["the API server's listener", gatewayPort],
])("a burst of streams leaves another client of %s its turn", async (_what, start) => {
  const { port, isSecure, headers } = await start();
  const burst = await openFrameClient(port, isSecure);
  const other = await openFrameClient(port, isSecure);
  await eventually("both are connected", () => [burst, other].every(({ frames }) => frames.length > 0));
  const answered: string[] = [];
  burst.onFrame = ({ type }) => type === FRAME.headers && answered.push("burst");
  other.onFrame = ({ type }) => type === FRAME.headers && answered.push("other");
  const block = blockOf(headers);
  burst.socket.cork();
  for (let index = 0; index < BURST; index += 1)
    burst.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 2 * index + 1, block);
  burst.socket.uncork();
  other.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, block);
  await eventually(
    () => `the answers: ${answered.length}`,
    () => answered.length === BURST + 1,
  );
  expect(answered.indexOf("other")).toBeLessThan(BURST / 2);
});

it("many HTTP/1.1 connections of one client leave another client its turn", async () => {
  const begun: string[] = [];
  const { httpPort: port } = await startDoor((path) => begun.push(path));
  const clients = Array.from({ length: BURST + 1 }, (_, index) => {
    const localAddress = index === BURST ? OTHER_ADDRESS : "127.0.0.1";
    return {
      path: index === BURST ? "/other" : "/burst",
      agent: new Agent({ keepAlive: true, localAddress }),
    };
  });
  onTestFinished(() => {
    for (const { agent } of clients) agent.destroy();
  });
  const requests = clients.map(
    ({ path, agent }) =>
      new Promise<number>((resolve, reject) => {
        get({ host: "127.0.0.1", port, path, agent }, (response) => {
          response.resume().once("end", () => resolve(response.statusCode ?? 0));
        }).once("error", reject);
      }),
  );
  expect(await Promise.all(requests)).toEqual(Array(BURST + 1).fill(200));
  begun.length = 0;
  // All connections are open now: their requests are read in one turn.
  const again = clients.map(
    ({ path, agent }) =>
      new Promise((resolve, reject) => {
        get({ host: "127.0.0.1", port, path, agent }, (response) => {
          response.resume().once("end", resolve);
        }).once("error", reject);
      }),
  );
  await Promise.all(again);
  expect(begun).toHaveLength(BURST + 1);
  expect(begun.indexOf("/other")).toBeLessThan(BURST / 2);
});

it("streams that are reset while they wait are not begun, and the others are answered", async () => {
  let begun = 0;
  const { httpPort } = await startDoor(() => (begun += 1));
  const client = await openFrameClient(httpPort);
  const ids = Array.from({ length: BURST }, (_, index) => 2 * index + 1);
  const block = blockOf({});
  client.socket.cork();
  for (const id of ids) client.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, id, block);
  const kept = ids.filter((id) => id % 4 === 1);
  for (const id of ids) if (!kept.includes(id)) client.reset(id, 8);
  client.socket.uncork();
  await eventually(
    () => `the answers: ${kept.filter((id) => client.endsOf(id).length > 0).length} of ${kept.length}`,
    () => kept.every((id) => client.endsOf(id).includes("END_STREAM")),
  );
  expect(begun).toBe(kept.length);
  client.socket.destroy();
});

it("requests that wait for their turn when the gateway stops are answered", async () => {
  let stopped: Promise<unknown> | undefined;
  const door = await startDoor(() => (stopped ??= door.gateway.shutDown()));
  const session = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
  const answers = await Promise.all(Array.from({ length: BURST }, () => ask(session, "/")));
  expect(answers.map(({ status, body }) => `${status} ${body}`)).toEqual(Array(BURST).fill("200 ok"));
  await stopped;
});
