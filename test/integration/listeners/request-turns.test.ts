import { once } from "node:events";
import { Agent, createServer, get, type IncomingHttpHeaders, type Server } from "node:http";
import { createServer as createHttp2Server, type ServerHttp2Session } from "node:http2";
import { get as getSecure, Agent as SecureAgent } from "node:https";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { connect as connectTls } from "node:tls";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { FLAG, FRAME, type FramePeer, openFrameClient } from "../../support/frame-peer.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { closeServer, listen } from "../../support/http/loopback.ts";
import { ask, connectHttp2 } from "../../support/http2-client.ts";
import { headerBlockOf } from "../../support/http2-frames.ts";
import { startTestGateway } from "../../support/test-gateway.ts";
import { TWO_NODES } from "../../support/two-nodes.ts";

const BURST = 200;
const OTHER_ADDRESS = "127.0.0.2";

/** A front door before a backend that answers at once, with what `onRequest` returns. */
async function startDoor(
  onRequest: (path: string, headers: IncomingHttpHeaders) => number = () => 200,
): Promise<FrontDoor> {
  const server: Server = createServer((request, response) => {
    response.writeHead(onRequest(request.url ?? "", request.headers));
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

describe("clients whose last answer was 401 begin few requests beside others", () => {
  /** Of a client, and as many that are refused; fewer than idle connections are kept to a backend. */
  const COUNT = 48;

  /** Its backend has one connection, so that nothing waits for more of them. */
  const refusingDoor = async () => {
    const server = createHttp2Server((request, response) => {
      response.writeHead(request.headers.authorization === undefined ? 401 : 200);
      response.end("ok");
    });
    const sessions = new Set<ServerHttp2Session>();
    server.on("session", (session) => sessions.add(session));
    onTestFinished(() => {
      for (const session of sessions) session.destroy();
      server.close();
    });
    const ports = [{ port: await listen(server) }];
    const services = serviceObjects("app", ports, { appProtocol: "kubernetes.io/h2c" });
    const ingress = ingressObject("all", { defaultBackend: backend("app") });
    const door = await FrontDoor.start([...services, ingress]);
    onTestFinished(() => door.stop());
    return { port: door.httpPort, isSecure: false, headers: { authorization: "Bearer known" } };
  };

  const refusedBeforeLast = (answered: readonly string[]): number =>
    answered.slice(0, answered.lastIndexOf("honest")).filter((name) => name === "stranger").length;

  const starts = [
    ["the front door", refusingDoor],
    ["the API server's listener", gatewayPort],
  ] as const;

  it.each(starts)("at %s, over HTTP/1.1", async (_what, start) => {
    const { port, isSecure, headers } = await start();
    const clientOf = (name: string) => {
      const options = { keepAlive: true, rejectUnauthorized: false };
      const agent = isSecure ? new SecureAgent(options) : new Agent(options);
      onTestFinished(() => agent.destroy());
      const ask = isSecure ? getSecure : get;
      const own = name === "honest" ? headers : {};
      return async () =>
        await new Promise<number>((resolve, reject) => {
          ask({ host: "127.0.0.1", port, path: "/api", agent, headers: own }, (response) => {
            response.resume().once("end", () => resolve(response.statusCode ?? 0));
          }).once("error", reject);
        });
    };
    const names = Array.from({ length: 2 * COUNT }, (_, index) => (index < COUNT ? "stranger" : "honest"));
    const clients = names.map((name) => ({ name, ask: clientOf(name) }));
    for (const [name, status] of [
      ["stranger", 401],
      ["honest", 200],
    ] as const) {
      const own = clients.filter((client) => client.name === name);
      expect(await Promise.all(own.map(({ ask }) => ask()))).toEqual(Array(COUNT).fill(status));
    }
    const answered: string[] = [];
    const asked = clients.map(({ name, ask }) => ask().then(() => answered.push(name)));
    await Promise.all(asked);
    expect(refusedBeforeLast(answered)).toBeLessThan(COUNT / 2);
  });

  it.each(starts)("at %s, over HTTP/2", async (_what, start) => {
    const { port, isSecure, headers } = await start();
    const send = (client: FramePeer, block: Buffer, from: number, count: number) => {
      client.socket.cork();
      for (let index = 0; index < count; index += 1)
        client.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, from + 2 * index, block);
      client.socket.uncork();
    };
    const honest = await openFrameClient(port, isSecure);
    send(honest, blockOf(headers), 1, COUNT);
    const last = 2 * COUNT - 1;
    // With connections to the backend for all of them.
    await eventually("one is accepted", () => honest.endsOf(last).length > 0);
    const refused = await openFrameClient(port, isSecure);
    send(refused, blockOf({}), 1, 1);
    await eventually("the other is refused", () => refused.endsOf(1).length > 0);
    // The API server's listener has closed the refused connection.
    const stranger = await openFrameClient(port, isSecure);
    await eventually("it is connected again", () => stranger.frames.length > 0);
    const answered: string[] = [];
    stranger.onFrame = ({ type }) => type === FRAME.headers && answered.push("stranger");
    honest.onFrame = ({ type }) => type === FRAME.headers && answered.push("honest");
    send(stranger, blockOf({}), 1, COUNT);
    send(honest, blockOf(headers), last + 2, COUNT);
    await eventually(
      () => `the answers: ${answered.length}`,
      () => answered.filter((name) => name === "honest").length === COUNT,
    );
    expect(refusedBeforeLast(answered)).toBeLessThan(COUNT / 2);
  });
});

it("many HTTP/1.1 connections of one client leave another client its turn", async () => {
  const begun: string[] = [];
  const { httpPort: port } = await startDoor((path) => {
    begun.push(path);
    return 200;
  });
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

describe("a burst of upgrades leaves another client its turn", () => {
  const EXEC = "/api/v1/namespaces/default/pods/web/exec?command=true&stdout=true";
  const UPGRADE = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
  ];

  /** Calls back with the status of each answer, which comes in one read. */
  async function openClient(
    start: { readonly port: number; readonly isSecure: boolean },
    localAddress: string,
    onStatus: (status: number) => void,
  ): Promise<{ send(head: readonly string[]): void }> {
    const options = { host: "127.0.0.1", port: start.port, localAddress };
    const socket = start.isSecure
      ? connectTls({ ...options, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] })
      : connect(options);
    onTestFinished(() => void socket.destroy());
    await once(socket, start.isSecure ? "secureConnect" : "connect");
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      const status = /^HTTP\/1\.1 (\d+)/.exec(chunk.toString("latin1"))?.[1];
      if (status !== undefined) onStatus(Number(status));
    });
    return { send: (head) => void socket.write(`${head.join("\r\n")}\r\n\r\n`) };
  }

  it.each([
    // Without a Host both are refused at once, and neither waits for a backend.
    ["the front door", doorPort, "GET /api HTTP/1.1", [], 400],
    ["the API server's listener", gatewayPort, `GET ${EXEC} HTTP/1.1`, ["Host: x"], 401],
  ] as const)("of %s, over HTTP/1.1", async (_what, start, line, lines, status) => {
    const { headers, ...server } = await start();
    const own = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const ask = "GET /api HTTP/1.1";
    const answered: string[] = [];
    const clientOf = async (name: string, address: string) => {
      const client = await openClient(server, address, (one) => answered.push(`${name} ${one}`));
      // A connection's first bytes come in a turn of their own.
      client.send([ask, "Host: x", ...own]);
      return client.send;
    };
    const burst = await Promise.all(Array.from({ length: BURST }, () => clientOf("burst", "127.0.0.1")));
    const other = await clientOf("other", OTHER_ADDRESS);
    const all = () => eventually("all are answered", () => answered.length === BURST + 1);
    await all();
    answered.length = 0;
    for (const send of burst) send([line, ...lines, ...UPGRADE]);
    other([ask, ...lines, ...own]);
    await all();
    expect(answered.filter((answer) => answer === `burst ${status}`)).toHaveLength(BURST);
    expect(answered.findIndex((answer) => answer.startsWith("other"))).toBeLessThan(BURST / 2);
  });

  it("and of clients that were refused, few begin beside others", async () => {
    const COUNT = 48;
    const { headers, ...server } = await gatewayPort();
    const own = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const answered: string[] = [];
    const clientsOf = (name: string, address: string) =>
      Promise.all(
        Array.from({ length: COUNT }, () => openClient(server, address, () => answered.push(name))),
      );
    const exec = [`GET ${EXEC} HTTP/1.1`, "Host: x", ...UPGRADE];
    const ask = ["GET /api HTTP/1.1", "Host: x", ...own];
    const [first] = await clientsOf("stranger", "127.0.0.1");
    first?.send(exec);
    await eventually("the stranger is refused", () => answered.length === 1);
    const strangers = await clientsOf("stranger", "127.0.0.1");
    const honest = await clientsOf("honest", OTHER_ADDRESS);
    answered.length = 0;
    for (const { send } of strangers) send(exec);
    for (const { send } of honest) send(ask);
    await eventually(
      () => `the answers: ${answered.length}`,
      () => answered.filter((name) => name === "honest").length === COUNT,
    );
    const before = answered.slice(0, answered.lastIndexOf("honest"));
    expect(before.filter((name) => name === "stranger").length).toBeLessThan(COUNT / 2);
  });
});

it("streams that are reset while they wait are not begun, and the others are answered", async () => {
  let begun = 0;
  const { httpPort } = await startDoor(() => {
    begun += 1;
    return 200;
  });
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

it("a connection that is lost while its streams wait leaves none of them open", async () => {
  const door = await startDoor();
  const client = await openFrameClient(door.httpPort);
  client.socket.cork();
  for (let index = 0; index < BURST; index += 1)
    client.send(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 2 * index + 1, blockOf({}));
  client.socket.uncork();
  await eventually("one is answered", () => client.endsOf(1).length > 0, { intervalMs: 0 });
  client.socket.destroy();
  const stopped = door.gateway.shutDown().then(() => "stopped");
  // Streams that were left would hold it for the 30 s of its grace period.
  expect(await Promise.race([stopped, delay(15_000, "held", { ref: false })])).toBe("stopped");
});

it("requests that wait for their turn when the gateway stops are answered", async () => {
  let stopped: Promise<unknown> | undefined;
  const door = await startDoor(() => {
    stopped ??= door.gateway.shutDown();
    return 200;
  });
  const session = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
  const answers = await Promise.all(Array.from({ length: BURST }, () => ask(session, "/")));
  expect(answers.map(({ status, body }) => `${status} ${body}`)).toEqual(Array(BURST).fill("200 ok"));
  await stopped;
});
