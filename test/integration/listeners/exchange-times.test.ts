import { once } from "node:events";
import {
  createServer as createHttp2Server,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { type AddressInfo, connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import {
  afterHead,
  answering,
  listenRaw,
  openClient,
  readToEnd,
  until,
} from "../../support/http/loopback.ts";
import { connectHttp2 } from "../../support/http2-client.ts";
import { TestAgent } from "../../support/test-agent.ts";

const TIMES = { apiServerRequest: "300ms", requestBody: "300ms", streamIdle: "400ms" };
const AUTHORIZED = "Authorization: Bearer front-door-token\r\n";
/** More than the buffers of two loopback connections and ours hold. */
const ENDLESS_BYTES = 64 * 1024 * 1024;

interface Upstream {
  readonly port: number;
  readonly sockets: readonly Socket[];
  received(): string;
}

async function upstreamThat(act: (socket: Socket) => void): Promise<Upstream> {
  const sockets: Socket[] = [];
  const upstream = await listenRaw((socket) => {
    sockets.push(socket.on("error", () => {}));
    act(socket);
  });
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    return upstream.close();
  });
  return { port: upstream.port, sockets, received: upstream.received };
}

async function doorTo(
  { port }: { readonly port: number },
  service: { appProtocol?: string } = {},
  times: object = TIMES,
): Promise<FrontDoor> {
  const objects = [
    ...serviceObjects("app", [{ port }], service),
    ingressObject("all", { defaultBackend: backend("app") }),
  ];
  const upstreamAPIServer = { url: `http://127.0.0.1:${port}` };
  const door = await FrontDoor.start(objects, {}, { timeouts: times, upstreamAPIServer });
  onTestFinished(() => door.stop());
  return door;
}

const apiPort = (door: FrontDoor): number => Number(new URL(door.gateway.apiServerUrl ?? "").port);

async function send(port: number, head: string): Promise<{ socket: Socket; ended: Promise<string> }> {
  const socket = await openClient(port);
  onTestFinished(() => void socket.destroy());
  const ended = readToEnd(socket).then(({ text }) => text);
  socket.write(head);
  return { socket, ended };
}

const get = (target: string): string => `GET ${target} HTTP/1.1\r\nHost: a\r\n${AUTHORIZED}\r\n`;
const post = (lines: string, target = "/api/v1/namespaces"): string =>
  `POST ${target} HTTP/1.1\r\nHost: a\r\n${AUTHORIZED}${lines}\r\n\r\n`;
const LENGTH = "Content-Type: application/json\r\nContent-Length: 9";
const CHUNKED = "Content-Type: application/json\r\nTransfer-Encoding: chunked";

describe("an upstream that owes bytes", () => {
  const silent = (): void => {};

  it("an API server without an answer: 504 as a Status", async () => {
    const door = await doorTo(await upstreamThat(silent));
    const answer = await fetch(`http://127.0.0.1:${apiPort(door)}/api/v1/pods`);
    expect(answer.status).toBe(504);
    expect(await answer.json()).toMatchObject({ kind: "Status", code: 504 });
  });

  it("the same at the agent", async () => {
    const upstream = await upstreamThat(silent);
    const agent = await TestAgent.start({
      server: `http://127.0.0.1:${upstream.port}`,
      timeouts: { apiServerRequestMs: 200 },
    });
    onTestFinished(() => agent.stop());
    expect((await agent.fetch("/api/v1/pods")).status).toBe(504);
  });

  it.each([
    "/api/v1/pods?watch=true",
    "/api/v1/watch/pods",
    "/api/v1/namespaces/a/pods/web/log?follow=true",
    "/api/v1/nodes/n/proxy/x",
  ])("but %s may wait for its head", async (target) => {
    const lateMs = 900;
    const upstream = await upstreamThat((socket) =>
      afterHead(socket, () =>
        setTimeout(() => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), lateMs),
      ),
    );
    const door = await doorTo(upstream);
    const answer = await fetch(`http://127.0.0.1:${apiPort(door)}${target}`);
    expect([answer.status, await answer.text()]).toEqual([200, "ok"]);
  });

  it("a response of declared length that stops is cut; one without a length may be silent", async () => {
    const lateMs = 900;
    const upstream = await upstreamThat((socket) =>
      afterHead(socket, (head) => {
        if (head.includes("/cut")) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok");
        else {
          socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n");
          setTimeout(() => socket.end("3\r\nend\r\n0\r\n\r\n"), lateMs);
        }
      }),
    );
    const door = await doorTo(upstream);
    for (const port of [apiPort(door), door.httpPort]) {
      const { ended } = await send(port, get("/api/v1/watch/cut"));
      expect(await ended).toMatch(/\r\n\r\nok$/);
      expect(await (await fetch(`http://127.0.0.1:${port}/api/v1/watch/whole`)).text()).toBe("okend");
    }
  });

  it("a body that is not taken: 504", async () => {
    const upstream = await upstreamThat((socket) => socket.pause());
    const door = await doorTo(upstream);
    for (const port of [apiPort(door), door.httpPort]) {
      const { socket, ended } = await send(
        port,
        post(`Content-Length: ${ENDLESS_BYTES}`, "/api/v1/watch/pods"),
      );
      socket.write(Buffer.alloc(ENDLESS_BYTES));
      await until(() => socket.bytesRead > 0, "an answer");
      socket.destroy();
      expect(await ended).toMatch(/^HTTP\/1\.1 504 /);
    }
  });
});

describe("an h2c backend that owes bytes", () => {
  const H2C = { appProtocol: "kubernetes.io/h2c" };

  /** Answers with two bytes and what `act` makes of the stream. */
  async function h2cThat(headers: OutgoingHttpHeaders, act: (stream: ServerHttp2Stream) => void) {
    const streams: ServerHttp2Stream[] = [];
    const server = createHttp2Server();
    server.on("stream", (stream) => {
      streams.push(stream.on("error", () => {}));
      stream.respond(headers);
      stream.write("ok");
      act(stream);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      for (const { session } of streams) session?.destroy();
      server.close();
    });
    return { port: (server.address() as AddressInfo).port, streams };
  }

  it("a response of declared length that stops is cut", async () => {
    const { port, streams } = await h2cThat({ "content-length": "9" }, () => {});
    const door = await doorTo({ port }, H2C);
    const { ended } = await send(door.httpPort, get("/"));
    expect(await ended).toMatch(/\r\n\r\nok$/);
    await until(() => streams[0]?.closed === true, "the end of the stream");
  });

  it("one without a length may be silent, but not for ever", async () => {
    const late = await h2cThat({}, (stream) => setTimeout(() => stream.end("end"), 900));
    const patient = await doorTo(late, H2C);
    expect(await (await fetch(`http://127.0.0.1:${patient.httpPort}/`)).text()).toBe("okend");
    const silent = await h2cThat({}, () => {});
    const door = await doorTo(silent, H2C, { idle: "1s" });
    const { ended } = await send(door.httpPort, get("/"));
    expect(await ended).toMatch(/2\r\nok\r\n$/);
    await until(() => silent.streams[0]?.closed === true, "the end of the stream");
  });
});

describe("an exchange that may be silent", () => {
  const IDLE = { idle: "1s" };
  const stopping = answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n");

  it.each([
    ["a watch at the API listener", apiPort, "/api/v1/pods?watch=true"],
    ["a response without a length at the front door", (door: FrontDoor) => door.httpPort, "/"],
  ])("ends when nothing has moved for the idle time: %s", async (_what, portOf, target) => {
    const upstream = await upstreamThat(stopping);
    const door = await doorTo(upstream, {}, IDLE);
    const { ended } = await send(portOf(door), get(target));
    expect(await ended).toMatch(/2\r\nok\r\n$/);
    await until(() => upstream.sockets[0]?.readableEnded === true, "the end of the exchange");
  });

  it("and so does a watch that is not answered: 504", async () => {
    const door = await doorTo(await upstreamThat(() => {}), {}, IDLE);
    const answer = await fetch(`http://127.0.0.1:${apiPort(door)}/api/v1/pods?watch=true`);
    expect(answer.status).toBe(504);
  });
});

describe("a request to an API server that never stops", () => {
  /** A byte now and then, to the end of the socket. */
  const trickle = (socket: Socket, bytes: string): void => {
    const timer = setInterval(() => socket.write(bytes), 50);
    socket.once("close", () => clearInterval(timer));
    onTestFinished(() => clearInterval(timer));
  };

  it("a response that trickles is cut after the whole time; a followed log is not", async () => {
    const upstream = await upstreamThat((socket) =>
      afterHead(socket, () => {
        socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        trickle(socket, "1\r\nx\r\n");
      }),
    );
    const door = await doorTo(upstream);
    const { ended } = await send(apiPort(door), get("/api/v1/pods"));
    expect(await ended).toMatch(/1\r\nx\r\n$/);
    const log = await send(apiPort(door), get("/api/v1/namespaces/a/pods/web/log?follow=true"));
    const count = (): number => (upstream.sockets[1]?.bytesWritten ?? 0) / 6;
    await until(() => count() > 12 + 10, "a log of more than 500 ms");
    expect(log.socket.closed).toBe(false);
  });

  it("a body that trickles: 408", async () => {
    const door = await doorTo(await upstreamThat(() => {}));
    const { ended, socket } = await send(apiPort(door), post(CHUNKED));
    trickle(socket, "1\r\n \r\n");
    await until(() => socket.bytesRead > 0, "an answer");
    socket.destroy();
    expect(await ended).toMatch(/^HTTP\/1\.1 408 [\s\S]*"kind":"Status"/);
  });
});

describe("a client that owes bytes", () => {
  it.each([
    ["of declared length", LENGTH],
    ["in chunks", CHUNKED],
  ])("a body %s that does not come: 408", async (_what, lines) => {
    const door = await doorTo(await upstreamThat(() => {}));
    const { ended, socket } = await send(apiPort(door), post(lines));
    await until(() => socket.bytesRead > 0, "an answer");
    socket.destroy();
    expect(await ended).toMatch(/^HTTP\/1\.1 408 [\s\S]*"kind":"Status"/);
  });

  it("a chunked body at the front door: 408; one whose answer has begun may be silent", async () => {
    const silent = await doorTo(await upstreamThat(() => {}));
    const refused = await send(silent.httpPort, post(CHUNKED, "/"));
    await until(() => refused.socket.bytesRead > 0, "an answer");
    refused.socket.destroy();
    expect(await refused.ended).toMatch(/^HTTP\/1\.1 408 /);

    const upstream = await upstreamThat(
      answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"),
    );
    const talking = await doorTo(upstream);
    const { socket, ended } = await send(talking.httpPort, post(CHUNKED, "/"));
    await until(() => socket.bytesRead > 0, "an answer");
    await new Promise((resolve) => setTimeout(resolve, 900));
    upstream.sockets[0]?.write("3\r\nend\r\n0\r\n\r\n");
    socket.end("0\r\n\r\n");
    expect(await ended).toMatch(/3\r\nend\r\n0\r\n\r\n$/);
  });

  it.each([
    ["silent", (_socket: Socket) => undefined],
    ["trickling", (socket: Socket) => setInterval(() => socket.write("1\r\n \r\n"), 50)],
  ])("a review's body that is %s: 408 when its time is over", async (_how, act) => {
    const door = await FrontDoor.start([], {}, { timeouts: TIMES });
    onTestFinished(() => door.stop());
    const review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    const { ended, socket } = await send(apiPort(door), post(CHUNKED, review));
    const timer = act(socket);
    onTestFinished(() => clearInterval(timer));
    await until(() => socket.bytesRead > 0, "an answer");
    clearInterval(timer);
    socket.destroy();
    expect(await ended).toMatch(/^HTTP\/1\.1 408 [\s\S]*did not come in time/);
  });
});

describe("a client that reads nothing of its response", () => {
  /** Writes for ever, as fast as it is taken. */
  const endless = (socket: Socket): void =>
    afterHead(socket, () => {
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${ENDLESS_BYTES * 100}\r\n\r\n`);
      const part = Buffer.alloc(256 * 1024);
      const pump = (): void => {
        while (!socket.destroyed && socket.write(part));
      };
      socket.on("drain", pump);
      pump();
    });

  it.each([
    ["the API listener", apiPort, "/api/v1/pods"],
    ["the API listener, in a watch", apiPort, "/api/v1/pods?watch=true"],
    ["the front door", (door: FrontDoor) => door.httpPort, "/"],
  ])("at %s: is let go, and the upstream with it", async (_where, portOf, target) => {
    const upstream = await upstreamThat(endless);
    const door = await doorTo(upstream);
    const client = connect(portOf(door), "127.0.0.1");
    onTestFinished(() => void client.destroy());
    client.on("error", () => {}).pause();
    client.write(get(target));
    await until(() => upstream.sockets.length === 1, "the request");
    await until(() => upstream.sockets[0]?.destroyed === true, "the end of the exchange");
  });

  it("over HTTP/2: its stream is reset, the others go on", async () => {
    const upstream = await upstreamThat((socket) =>
      afterHead(socket, (head) => {
        if (head.includes("GET /small")) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        else {
          socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${ENDLESS_BYTES}\r\n\r\n`);
          socket.write(Buffer.alloc(ENDLESS_BYTES));
        }
      }),
    );
    const door = await doorTo(upstream);
    const session = await connectHttp2(`http://127.0.0.1:${door.httpPort}`);
    onTestFinished(() => session.destroy());
    const stalled = session.request({ ":path": "/large", ":authority": "a" });
    stalled.on("error", () => {});
    await once(stalled, "response");
    await until(() => upstream.sockets[0]?.destroyed === true, "the end of the exchange");
    const small = session.request({ ":path": "/small", ":authority": "a" });
    const [part] = (await once(small, "data")) as [Buffer];
    expect(part.toString()).toBe("ok");
  });

  it("but one that reads slowly, and stops for less than the time, has it all", async () => {
    const bytes = 16 * 1024 * 1024;
    const upstream = await upstreamThat((socket) =>
      afterHead(socket, () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${bytes}\r\n\r\n`);
        socket.end(Buffer.alloc(bytes));
      }),
    );
    // So much longer than a pause that a busy machine's pauses are shorter, too.
    const door = await doorTo(upstream, {}, { ...TIMES, streamIdle: "5s" });
    const answer = await fetch(`http://127.0.0.1:${door.httpPort}/`);
    let read = 0;
    let pauses = 0;
    for await (const part of answer.body as ReadableStream<Uint8Array>) {
      read += part.length;
      if (read < pauses * (bytes / 6)) continue;
      pauses += 1;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    expect(read).toBe(bytes);
  });
});
