import { once } from "node:events";
import { createServer as createHttpServer, type RequestListener } from "node:http";
import { createServer as createHttp2Server, createSecureServer, type Http2Server } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { HTTPGetAction, ProbeHandler } from "../../../src/api/probe-objects.ts";
import { closeAfterServer } from "../../../src/probes/close-after-server.ts";
import type { ProbeSocket } from "../../../src/probes/probe-socket.ts";
import { startGrpcHealthServer } from "../../support/grpc-health-server.ts";
import { issueCertificate } from "../../support/test-certificates.ts";
import { earlierTimeWaits, hasTcpTable, timeWaitsOf } from "../../support/time-waits.ts";
import { probe } from "./probe.ts";

type SocketHearer = Parameters<ProbeSocket["hear"]>[0];

// The bound under test.
const MAX_LINGERING = 1_024;

const PROBES = 5;

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** Who keeps TIME_WAIT of some probes. */
async function timeWaitsAfter(port: number, handler: ProbeHandler) {
  const earlier = earlierTimeWaits(port);
  for (let index = 0; index < PROBES; index++) {
    expect(await probe(handler)).toMatchObject({ result: "Success" });
  }
  return timeWaitsOf(port, earlier);
}

async function listen(server: Server | Http2Server): Promise<number> {
  const sockets = new Set<{ destroy(): unknown }>();
  server.on("connection", (socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stops.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

const certificate = () => issueCertificate({ commonName: "probed" });

type OnGoaway = "closes" | "stays";

/** Answers each request, as a health service does where it is asked as gRPC. */
async function startHttp2(onGoaway: OnGoaway, isTls: boolean): Promise<number> {
  const server = isTls ? createSecureServer(await certificate()) : createHttp2Server();
  server.on("session", (session) => {
    // grpc-go and nginx ignore a client's GOAWAY.
    if (onGoaway === "stays") session.close = () => {};
  });
  server.on("stream", (stream, headers) => {
    if (headers["content-type"] !== "application/grpc") {
      stream.respond();
      stream.end("fine");
      return;
    }
    stream.respond({ "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": 0 }));
    stream.end(Buffer.from([0, 0, 0, 0, 2, 8, 1]));
  });
  return listen(server);
}

/** `isDeaf`: it keeps connections open that the client wants closed. */
async function startHttp1(isDeaf: boolean, isTls: boolean): Promise<number> {
  const answer: RequestListener = ({ socket }, response) => {
    if (isDeaf) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine");
    else response.end("fine");
  };
  return listen(isTls ? createHttpsServer(await certificate(), answer) : createHttpServer(answer));
}

const get = (action: Omit<HTTPGetAction, "port">) => (port: number) => ({ httpGet: { port, ...action } });
const check = (mode: "Plaintext" | "TLS") => (port: number) => ({ grpc: { port, mode } });

/** TIME_WAIT is with the side that closed first. */
describe.runIf(hasTcpTable)("after a whole answer", () => {
  it.each([
    { what: "h2c", start: () => startHttp2("closes", false), handler: get({ protocol: "HTTP2" }) },
    { what: "HTTP/2 over TLS", start: () => startHttp2("closes", true), handler: get({ scheme: "HTTPS" }) },
    { what: "HTTP/1.1", start: () => startHttp1(false, false), handler: get({}) },
    { what: "HTTPS", start: () => startHttp1(false, true), handler: get({ scheme: "HTTPS" }) },
    { what: "grpc-js", start: () => startGrpcJs(false), handler: check("Plaintext") },
    { what: "grpc-js over TLS", start: () => startGrpcJs(true), handler: check("TLS") },
  ])("a server closes first and keeps TIME_WAIT ($what)", async ({ start, handler }) => {
    const port = await start();
    expect(await timeWaitsAfter(port, handler(port))).toEqual({ client: 0, server: PROBES });
  });

  it.each([
    { what: "h2c", start: () => startHttp2("stays", false), handler: get({ protocol: "HTTP2" }) },
    { what: "HTTP/2 over TLS", start: () => startHttp2("stays", true), handler: get({ scheme: "HTTPS" }) },
    { what: "HTTP/1.1", start: () => startHttp1(true, false), handler: get({}) },
    { what: "HTTPS", start: () => startHttp1(true, true), handler: get({ scheme: "HTTPS" }) },
    { what: "gRPC", start: () => startHttp2("stays", false), handler: check("Plaintext") },
    { what: "gRPC over TLS", start: () => startHttp2("stays", true), handler: check("TLS") },
  ])("a server that stays is reset after a while, without TIME_WAIT ($what)", async ({ start, handler }) => {
    const port = await start();
    expect(await timeWaitsAfter(port, handler(port))).toEqual({ client: 0, server: 0 });
  });

  it("a TCP probe closes without a reset", async () => {
    const server = createTcpServer();
    const port = await listen(server);
    const ends: string[] = [];
    server.on("connection", (socket) => {
      socket.resume().on("end", () => ends.push("end"));
      socket.on("error", () => ends.push("reset"));
    });
    expect(await timeWaitsAfter(port, { tcpSocket: { port } })).toEqual({ client: PROBES, server: 0 });
    expect(ends).toEqual(Array(PROBES).fill("end"));
  });

  it("so many wait at once, and one more resets the oldest", () => {
    const closed: string[] = [];
    const hearers: SocketHearer[] = [];
    for (let index = 0; index <= MAX_LINGERING; index++) {
      const socket = {
        hear: (hearer: SocketHearer) => void hearers.push(hearer),
        unref: () => {},
        destroy: () => void closed.push("closed"),
        reset: () => void closed.push("reset"),
      };
      closeAfterServer(socket as unknown as ProbeSocket);
    }
    expect(closed).toEqual(["reset"]);
    for (const hearer of hearers.slice(1)) hearer.onEnd();
    expect(closed.slice(1)).toEqual(Array(MAX_LINGERING).fill("closed"));
  });
});

async function startGrpcJs(isTls: boolean): Promise<number> {
  const server = await startGrpcHealthServer(isTls ? await certificate() : undefined);
  stops.push(() => server.stop());
  return server.port;
}
