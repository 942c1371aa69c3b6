import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  constants,
  createServer as createHttp2Server,
} from "node:http2";
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** A front door with one Ingress: every host and path goes to the service `app` on these ports. */
async function doorTo(
  ports: readonly number[],
  service: { appProtocol?: string } = {},
  metadata: object = {},
): Promise<FrontDoor> {
  const door = await FrontDoor.start([
    ...serviceObjects(
      "app",
      ports.map((port) => ({ port })),
      service,
    ),
    ingressObject("all", { defaultBackend: backend("app") }, metadata),
  ]);
  cleanups.push(() => door.stop());
  return door;
}

/** Sends bytes as they are and resolves with all that came until the connection ended. */
async function raw(port: number, text: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.setEncoding("latin1");
  let received = "";
  socket.on("data", (chunk: string) => {
    received += chunk;
  });
  socket.write(Buffer.from(text, "latin1"));
  await once(socket, "close");
  return received;
}

/** A TCP server that answers each connection by `serve`. */
async function backendOf(serve: (socket: Socket) => void): Promise<number> {
  const server = createTcpServer(serve).listen(0, "127.0.0.1");
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** A port where nobody listens. */
async function closedPort(): Promise<number> {
  const server = createTcpServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

function http2Client(door: FrontDoor, isTls: boolean): ClientHttp2Session {
  const session = isTls
    ? connectHttp2(`https://127.0.0.1:${door.httpsPort}`, {
        rejectUnauthorized: false,
        servername: "x.example.com",
      })
    : connectHttp2(`http://127.0.0.1:${door.httpPort}`);
  session.on("error", () => {});
  cleanups.push(() => session.destroy());
  return session;
}

async function http2Exchange(
  session: ClientHttp2Session,
  headers: Record<string, string>,
  body?: string,
): Promise<{ headers: Record<string, unknown>; trailers: Record<string, unknown>; body: string }> {
  const stream = session.request(headers, { endStream: body === undefined });
  const result = { headers: {}, trailers: {}, body: "" };
  stream.on("response", (received) => Object.assign(result.headers, received));
  stream.on("trailers", (received) => Object.assign(result.trailers, received));
  stream.setEncoding("utf8");
  stream.on("data", (chunk: string) => {
    result.body += chunk;
  });
  if (body !== undefined) stream.end(body);
  await once(stream, "close");
  return result;
}

describe("a request head that does not end", () => {
  for (const [name, open] of [
    ["in the clear", (door: FrontDoor) => connect(door.httpPort, "127.0.0.1")],
    ["over TLS", (door: FrontDoor) => connectTls({ port: door.httpsPort, rejectUnauthorized: false })],
  ] as const) {
    it(`${name}: 408 when the time is up`, async () => {
      const door = await FrontDoor.start([], {}, { timeouts: { handshake: "200ms" } });
      cleanups.push(() => door.stop());
      const socket = open(door).setEncoding("latin1");
      let received = "";
      socket.on("data", (chunk: string) => {
        received += chunk;
      });
      socket.write("GET / HTTP/1.1\r\nHost: app\r\nX-More: ");
      await once(socket, "close");
      expect(received).toContain("HTTP/1.1 408 Request Timeout\r\n");
    });
  }
});

describe("bad requests", () => {
  it.each([
    ["no Host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"],
    ["two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n"],
    ["a Host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\nConnection: close\r\n\r\n"],
    ["dots above the root", "GET /a/../../etc HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"],
    ["encoded dots above the root", "GET /%2e%2e/x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"],
    [
      "a length and chunks",
      "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd"],
    [
      "an obscured coding",
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
    ],
    ["a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\nConnection: close\r\n\r\n"],
  ])("%s is answered 400, and the backend hears nothing", async (_what, text) => {
    let connections = 0;
    const door = await doorTo([await backendOf(() => connections++)]);
    expect(await raw(door.httpPort, text)).toMatch(/^HTTP\/1\.1 400 /);
    expect(connections).toBe(0);
  });

  it("headers of more than the bound are answered 431", async () => {
    const door = await doorTo([await closedPort()]);
    const text = `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(1_100_000)}\r\n\r\n`;
    expect(await raw(door.httpPort, text)).toMatch(/^HTTP\/1\.1 431 /);
  });

  it("CONNECT opens no way through", async () => {
    const door = await doorTo([await closedPort()]);
    expect(await raw(door.httpPort, "CONNECT a.com:443 HTTP/1.1\r\nHost: a.com:443\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 404 /,
    );
  });
});

describe("endpoints", () => {
  it("one that refuses the connection is passed over; with none left it is 502", async () => {
    const door = await doorTo([await closedPort(), await closedPort()]);
    const pod = await door.addPod("app");
    expect((await fetch(`http://127.0.0.1:${door.httpPort}/`)).status).toBe(502);
    door.write([
      ...serviceObjects("app", [{ port: await closedPort() }, { port: pod.port }]),
      ingressObject("all", { defaultBackend: backend("app") }),
    ]);
    await expect.poll(async () => (await fetch(`http://127.0.0.1:${door.httpPort}/`)).status).toBe(200);
    for (let round = 0; round < 10; round++) {
      const answer = await fetch(`http://127.0.0.1:${door.httpPort}/`, {
        method: "POST",
        body: "x".repeat(100_000),
      });
      expect(answer.status).toBe(200);
      await answer.text();
    }
    expect((await door.readMetrics()).get("sluice_ingress_endpoint_retries_total")).toBeGreaterThan(4);
  });

  it("says of endpoints whose addresses may not be dialled that they are refused, and counts and logs it once", async () => {
    const objects = serviceObjects("app", [{ port: 1 }]);
    const all = ingressObject("all", { defaultBackend: backend("app") });
    const door = await FrontDoor.start([...objects, all], { allowedEndpointAddresses: [] });
    cleanups.push(() => door.stop());
    for (let count = 0; count < 3; count += 1) {
      const answer = await fetch(`http://127.0.0.1:${door.httpPort}/`);
      expect(answer.status).toBe(503);
      expect(await answer.text()).toContain("have addresses that may not be dialled");
    }
    const series = 'sluice_ingress_problems{reason="EndpointAddressRefused"}';
    expect((await door.readMetrics()).get(series)).toBe(1);
    const lines = door.logged.filter((line) => line.includes("EndpointAddressRefused"));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("127.0.0.1 (listeners.ingress.allowedEndpointAddresses)");
  });

  it("says what to write where gRPC comes for a Service without appProtocol, and of no other request", async () => {
    const objects = serviceObjects("app", [{ port: 1 }]);
    const all = ingressObject("all", { defaultBackend: backend("app") });
    const door = await FrontDoor.start([...objects, all]);
    cleanups.push(() => door.stop());
    const post = async (type: string) => {
      const headers = { "Content-Type": type };
      await (
        await fetch(`http://127.0.0.1:${door.httpPort}/x`, { method: "POST", headers, body: "x" })
      ).text();
    };
    const series = 'sluice_ingress_problems{reason="MissingAppProtocol"}';
    for (const other of ["application/json", "application/grpc-web", "application/grpcx"]) await post(other);
    expect((await door.readMetrics()).get(series) ?? 0).toBe(0);
    for (const grpc of ["application/grpc", "application/grpc+proto", "application/grpc"]) await post(grpc);
    expect((await door.readMetrics()).get(series)).toBe(1);
    const lines = door.logged.filter((line) => line.includes("MissingAppProtocol"));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("set appProtocol: kubernetes.io/h2c there");
  });

  it.each([
    ["a service that is not there", [], "does not exist"],
    [
      "a port that is not there",
      serviceObjects("app", [], { portName: "x" }).map((object) =>
        JSON.parse(JSON.stringify(object).replace("8080", "9090")),
      ),
      "no such port",
    ],
    ["no ready endpoint", serviceObjects("app", [{ port: 1, ready: false }]), "no ready endpoints"],
    [
      "an external name",
      [
        {
          apiVersion: "v1",
          kind: "Service",
          metadata: { name: "app", namespace: "default" },
          spec: { type: "ExternalName", externalName: "metadata.internal", ports: [{ port: 8080 }] },
        },
      ],
      "external name",
    ],
  ])("%s is 503", async (_what, objects, text) => {
    const door = await FrontDoor.start([
      ...objects,
      ingressObject("all", { defaultBackend: backend("app") }),
    ]);
    cleanups.push(() => door.stop());
    const answer = await fetch(`http://127.0.0.1:${door.httpPort}/`);
    expect(answer.status).toBe(503);
    expect(await answer.text()).toContain(text);
    const json = await fetch(`http://127.0.0.1:${door.httpPort}/`, {
      headers: { accept: "application/json" },
    });
    expect(await json.json()).toMatchObject({ kind: "Status", status: "Failure", code: 503 });
  });

  it("an address that is no pod's is not dialled", async () => {
    const pod = await backendOf((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    const door = await FrontDoor.start(
      [...serviceObjects("app", [{ port: pod }]), ingressObject("all", { defaultBackend: backend("app") })],
      { allowedEndpointAddresses: [] },
    );
    cleanups.push(() => door.stop());
    expect((await fetch(`http://127.0.0.1:${door.httpPort}/`)).status).toBe(503);
  });

  it("one that dies in mid-response cuts the client's response too", async () => {
    const port = await backendOf((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart");
        setImmediate(() => socket.destroy());
      });
    });
    const door = await doorTo([port]);
    await expect(
      fetch(`http://127.0.0.1:${door.httpPort}/`).then((answer) => answer.text()),
    ).rejects.toThrow();
  });

  it("one that never answers is 504 after the annotation's time", async () => {
    const door = await doorTo(
      [await backendOf(() => {})],
      {},
      { annotations: { "sluice.dev/response-timeout-seconds": "1" } },
    );
    expect((await fetch(`http://127.0.0.1:${door.httpPort}/`)).status).toBe(504);
  });
});

describe("upgrades", () => {
  it("WebSocket messages go both ways, with the backend's subprotocol", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1", handleProtocols: () => "b" });
    cleanups.push(() => server.close());
    server.on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
    await once(server, "listening");
    const door = await doorTo([(server.address() as AddressInfo).port]);
    const client = new WebSocket(`ws://127.0.0.1:${door.httpPort}/chat`, ["a", "b"]);
    cleanups.push(() => client.terminate());
    await once(client, "open");
    expect(client.protocol).toBe("b");
    const large = Buffer.alloc(1_000_000, 7);
    client.send(large);
    const [echoed] = (await once(client, "message")) as [Buffer];
    expect(echoed.equals(large)).toBe(true);
    client.close();
    await once(client, "close");
  });

  it("any other protocol is switched to, half-close included", async () => {
    const server = createServer();
    server.on("upgrade", (request, socket: Socket) => {
      socket.allowHalfOpen = true;
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${request.headers.upgrade}\r\n\r\n`,
      );
      let heard = "";
      socket.on("data", (chunk: Buffer) => {
        heard += chunk.toString();
      });
      socket.on("end", () => socket.end(`heard ${heard}`));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    cleanups.push(() => server.close());
    const door = await doorTo([(server.address() as AddressInfo).port]);
    const client = connect({ port: door.httpPort, host: "127.0.0.1", allowHalfOpen: true });
    let received = "";
    client.on("data", (chunk: Buffer) => {
      received += chunk.toString();
    });
    client.write("GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    await expect.poll(() => received).toContain("101 Switching Protocols");
    client.end("all of it");
    await once(client, "end");
    expect(received).toMatch(/heard all of it$/);
  });

  it("a refusal is the backend's own answer", async () => {
    const port = await backendOf((socket) => {
      socket.once("data", () => socket.end("HTTP/1.1 418 Teapot\r\nContent-Length: 5\r\n\r\nshort"));
    });
    const door = await doorTo([port]);
    const answer = await raw(
      door.httpPort,
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    expect(answer).toMatch(/^HTTP\/1\.1 418 /);
    expect(answer).toContain("short");
  });

  it("Upgrade: h2c is an offer that is not taken", async () => {
    const door = await FrontDoor.start([]);
    cleanups.push(() => door.stop());
    const pod = await door.addPod("app");
    door.write([...serviceObjects("app", [pod]), ingressObject("all", { defaultBackend: backend("app") })]);
    await door.serves(1);
    const request = httpRequest({
      port: door.httpPort,
      host: "127.0.0.1",
      agent: false,
      headers: { Connection: "Upgrade, HTTP2-Settings", Upgrade: "h2c", "HTTP2-Settings": "AAMAAABk" },
    }).end();
    const [response] = await once(request, "response");
    expect(response.statusCode).toBe(200);
    response.resume();
  });
});

describe("HTTP/2 clients", () => {
  it.each([true, false])("are served by HTTP/1.1 backends (TLS: %s)", async (isTls) => {
    const door = await FrontDoor.start([]);
    cleanups.push(() => door.stop());
    const pod = await door.addPod("app");
    door.write([...serviceObjects("app", [pod]), ingressObject("all", { defaultBackend: backend("app") })]);
    await door.serves(1);
    const session = http2Client(door, isTls);
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        http2Exchange(
          session,
          { ":path": `/p${index}`, ":method": "POST", ":authority": "h2.example.com", cookie: "a=1" },
          "body",
        ),
      ),
    );
    for (const [index, answer] of answers.entries()) {
      expect(answer.headers).toMatchObject({ ":status": 200, server: "sluice" });
      expect(JSON.parse(answer.body)).toMatchObject({
        path: `/p${index}`,
        host: "h2.example.com",
        proto: "HTTP/1.1",
      });
      expect(JSON.parse(answer.body).headers).toMatchObject({
        Cookie: ["a=1"],
        "X-Forwarded-Proto": [isTls ? "https" : "http"],
      });
    }
  });

  it("a path above the root is 400, no route is 404", async () => {
    const door = await FrontDoor.start([]);
    cleanups.push(() => door.stop());
    const session = http2Client(door, false);
    const request = (path: string) => http2Exchange(session, { ":path": path, ":authority": "a.com" });
    expect((await request("/../x")).headers).toMatchObject({ ":status": 400 });
    expect((await request("/x")).headers).toMatchObject({ ":status": 404 });
  });

  it("carry a WebSocket on a stream (RFC 8441)", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    cleanups.push(() => server.close());
    server.on("connection", (socket) => {
      socket.send("hello");
      socket.close(1000);
    });
    await once(server, "listening");
    const door = await doorTo([(server.address() as AddressInfo).port]);
    const session = http2Client(door, true);
    await once(session, "remoteSettings");
    expect(session.remoteSettings.enableConnectProtocol).toBe(true);
    const stream = session.request({
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":path": "/chat",
      ":authority": "a.com",
      "sec-websocket-version": "13",
    });
    const [headers] = await once(stream, "response");
    expect(headers[":status"]).toBe(200);
    expect(headers).not.toHaveProperty("sec-websocket-accept");
    let bytes = Buffer.alloc(0);
    stream.on("data", (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
    });
    // An unmasked text frame of five bytes, then Close with 1000.
    await expect.poll(() => bytes.toString("latin1")).toBe("\x81\x05hello\x88\x02\x03\xe8");
    stream.close();
  });

  it("get so many streams at a time, and resetting them at once harms nobody else", async () => {
    let requests = 0;
    const door = await doorTo([
      await backendOf((socket) => {
        socket.on("data", () => {
          requests += 1;
          socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        });
      }),
    ]);
    const flooder = http2Client(door, false);
    await once(flooder, "remoteSettings");
    expect(flooder.remoteSettings.maxConcurrentStreams).toBe(250);
    for (let index = 0; index < 5_000 && !flooder.destroyed; index++) {
      const stream = flooder.request({ ":path": "/", ":authority": "a.com" });
      stream.on("error", () => {});
      stream.close(constants.NGHTTP2_CANCEL);
    }
    const other = await http2Exchange(http2Client(door, false), { ":path": "/", ":authority": "a.com" });
    expect(other.headers).toMatchObject({ ":status": 200 });
    expect(requests).toBeLessThan(5_000);
  });

  it("plain CONNECT is refused", async () => {
    const door = await doorTo([await closedPort()]);
    const answer = await http2Exchange(http2Client(door, false), {
      ":method": "CONNECT",
      ":authority": "a.com:443",
    });
    expect(answer.headers).toMatchObject({ ":status": 501 });
  });
});

describe("h2c backends (appProtocol kubernetes.io/h2c)", () => {
  it("get HTTP/2 with prior knowledge; trailers arrive", async () => {
    const server = createHttp2Server();
    server.on("stream", (stream, headers) => {
      let body = "";
      stream.setEncoding("utf8");
      stream.on("data", (chunk: string) => {
        body += chunk;
      });
      stream.on("end", () => {
        stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
        stream.end(`${headers[":authority"]} ${headers.te} ${body}`);
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    cleanups.push(() => server.close());
    const door = await doorTo([(server.address() as AddressInfo).port], { appProtocol: "kubernetes.io/h2c" });
    const session = http2Client(door, false);
    for (let round = 0; round < 3; round++) {
      const answer = await http2Exchange(
        session,
        {
          ":method": "POST",
          ":path": "/pkg.Service/Call",
          ":authority": "grpc.example.com",
          te: "trailers",
          "content-type": "application/grpc",
        },
        "message",
      );
      expect(answer.headers).toMatchObject({ ":status": 200 });
      expect(answer.body).toBe("grpc.example.com trailers message");
      expect(answer.trailers).toMatchObject({ "grpc-status": "0" });
    }
    session.close();
  });

  it.each([
    [
      "speaks HTTP/1.1",
      (socket: Socket) => void socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")),
    ],
    ["closes at once", (socket: Socket) => void socket.end()],
  ])("a backend that %s is 502", async (_what, serve) => {
    const door = await doorTo([await backendOf(serve)], { appProtocol: "kubernetes.io/h2c" });
    expect((await fetch(`http://127.0.0.1:${door.httpPort}/`)).status).toBe(502);
  });
});
