import { once } from "node:events";
import { createServer, type Http2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Http2Upstream } from "../../../../src/http/upstream/http2-upstream.ts";
import { eventually } from "../../../support/eventually.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";

let server: Http2Server;
let cable: FaultProxy;
let upstream: Http2Upstream | undefined;

/** Answers `/` and leaves `/later` waiting; `pings`: when it got them. */
async function start(times = { silenceMs: 50, pingIntervalMs: 0 }) {
  const pings: number[] = [];
  server = createServer();
  server.on("stream", (stream, { ":path": path }) => {
    // Those that wait end by the cable's reset.
    stream.on("error", () => {});
    if (path === "/") stream.respond({ ":status": 200 }, { endStream: true });
  });
  server.on("session", (session) =>
    session.on("ping", () => pings.push(performance.now())).on("error", () => {}),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cable = await startFaultProxy((server.address() as AddressInfo).port, {
    cutAfterBytes: Number.POSITIVE_INFINITY,
    maxCuts: 0,
  });
  upstream = new Http2Upstream({ host: "127.0.0.1", port: cable.port }, 300, times);
  return { upstream, pings };
}

afterEach(async () => {
  upstream?.close();
  await cable.close();
  server.close();
});

/** The status of its answer, or what its stream ended with. */
async function ask(path: string): Promise<string> {
  const connection = await (upstream as Http2Upstream).connection("192.0.2.1");
  const stream = connection.request({ ":path": path }, {});
  return new Promise((resolve) => {
    stream.once("response", (headers) => resolve(String(headers[":status"])));
    stream.on("error", (error: Error) => resolve(error.message));
    stream.once("close", () => resolve("closed"));
    stream.resume();
  });
}

describe("the shared connection to an h2c backend", () => {
  it("is given up when its network is gone: the next request gets another", async () => {
    const { upstream } = await start();
    expect(await ask("/")).toBe("200");
    const { session } = await upstream.connection("192.0.2.1");
    cable.freeze();
    expect(await ask("/")).toBe("the connection answers no PING");
    expect(session.destroyed).toBe(true);
    expect(await ask("/")).toBe("200");
  });

  it("stays where the backend is slow to answer, and alive", async () => {
    const { upstream, pings } = await start();
    const connection = await upstream.connection("192.0.2.1");
    void ask("/later");
    // Longer than an answer to the first may take.
    await eventually("eight PINGs", () => {
      void ask("/later");
      return pings.length >= 8;
    });
    expect(await upstream.connection("192.0.2.1")).toBe(connection);
    expect(await ask("/")).toBe("200");
  });

  it("is tried no more often than backends bear", async () => {
    const { pings } = await start({ silenceMs: 20, pingIntervalMs: 200 });
    void ask("/later");
    await eventually("three PINGs", () => {
      void ask("/later");
      return pings.length >= 3;
    });
    const gaps = pings.slice(1).map((atMs, index) => atMs - (pings[index] as number));
    expect(Math.min(...gaps)).toBeGreaterThan(150);
  });
});
