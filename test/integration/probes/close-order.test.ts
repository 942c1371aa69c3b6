import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { ProbeHandler } from "../../../src/api/probe-objects.ts";
import { closeAfterServer, MAX_LINGERING } from "../../../src/probes/http2/close-after-server.ts";
import type { ProbeSocket, SocketHearer } from "../../../src/probes/probe-socket.ts";
import { eventually } from "../../support/eventually.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { startGrpcHealthServer } from "../../support/grpc-health-server.ts";
import { issueCertificate } from "../../support/test-certificates.ts";
import { probe } from "./probe.ts";

const PROBES = 5;

const stops: (() => unknown)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

/** Who closed first, of connections through a proxy. */
async function closers(port: number, handlerOf: (port: number) => ProbeHandler) {
  const proxy = await startFaultProxy(port, { cutAfterBytes: Number.POSITIVE_INFINITY, maxCuts: 0 });
  stops.push(() => proxy.close());
  for (let index = 0; index < PROBES; index++) {
    expect((await probe(handlerOf(proxy.port))).result).toBe("Success");
  }
  const { endedFirst } = proxy;
  await eventually("an end of each connection", () => endedFirst.client + endedFirst.target === PROBES);
  return endedFirst;
}

async function startH2c(onSession: "closes" | "stays") {
  const server = createServer((_, response) => response.end("fine"));
  server.on("session", (session) => {
    stops.push(() => session.destroy());
    // What grpc-go and nginx do with a client's GOAWAY: nothing.
    if (onSession === "stays") session.close = () => {};
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stops.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** TIME_WAIT is with the side that closed first. */
describe("after a whole answer", () => {
  it("an h2c server closes first", async () => {
    const port = await startH2c("closes");
    const ends = await closers(port, (at) => ({ httpGet: { port: at, protocol: "HTTP2", scheme: "HTTP" } }));
    expect(ends).toEqual({ client: 0, target: PROBES });
  });

  it.each(["Plaintext", "TLS"])("a gRPC server closes first (%s)", async (mode) => {
    const server = await startGrpcHealthServer(
      mode === "TLS" ? await issueCertificate({ commonName: "grpc" }) : undefined,
    );
    stops.push(() => server.stop());
    const ends = await closers(server.port, (at) => ({ grpc: { port: at, mode } }));
    expect(ends).toEqual({ client: 0, target: PROBES });
  });

  it("a server that stays is left after a while", async () => {
    const port = await startH2c("stays");
    const ends = await closers(port, (at) => ({ httpGet: { port: at, protocol: "HTTP2", scheme: "HTTP" } }));
    expect(ends).toEqual({ client: PROBES, target: 0 });
  });

  it("so many wait at once, and one more closes the oldest", () => {
    const closed: number[] = [];
    const hearers: SocketHearer[] = [];
    for (let index = 0; index <= MAX_LINGERING; index++) {
      const socket = {
        hear: (hearer: SocketHearer) => void hearers.push(hearer),
        unref: () => {},
        destroy: () => void closed.push(index),
      };
      closeAfterServer(socket as unknown as ProbeSocket);
    }
    expect(closed).toEqual([0]);
    for (const hearer of hearers.slice(1)) hearer.onEnd();
    expect(closed).toHaveLength(MAX_LINGERING + 1);
  });
});
