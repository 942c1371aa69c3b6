import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openClient, readToEnd, untilRefused } from "../../../support/http/loopback.ts";
import { startTestGateway, type TestGateway } from "../../../support/test-gateway.ts";

let apiServer: Server;
let gateway: TestGateway;
/** Requests that the API server has not answered yet. */
const held: ServerResponse[] = [];

async function start(gracePeriod: string): Promise<void> {
  apiServer = createServer((_request, response) => void held.push(response));
  await new Promise<void>((resolve) => apiServer.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(apiServer.address() as AddressInfo).port}`;
  gateway = await startTestGateway({
    scheme: "http",
    timeouts: { shutdownGracePeriod: gracePeriod },
    configuration: { upstreamAPIServer: { url } },
  });
}

beforeEach(() => void held.splice(0));
afterEach(async () => {
  await gateway.stop();
  apiServer.closeAllConnections();
  await new Promise((resolve) => apiServer.close(resolve));
});

function ask(path: string): Promise<{ response: IncomingMessage; body: Promise<string> }> {
  return new Promise((resolve, reject) => {
    get(
      `${gateway.apiServerUrl}${path}`,
      { agent: false, headers: { Connection: "keep-alive" } },
      (response) => resolve({ response, body: text(response) }),
    ).on("error", reject);
  });
}

const portOf = (): number => Number(new URL(gateway.apiServerUrl).port);

describe("plain requests at a shutdown", () => {
  it("are answered whole within the grace period, and their connections closed", async () => {
    await start("20s");
    const asked = ask("/api/v1/pods");
    await expect.poll(() => held.length).toBe(1);
    const stopped = gateway.shutDown();
    await untilRefused(portOf());
    held[0]?.writeHead(200);
    held[0]?.write("first half, ");
    const { response, body } = await asked;
    held[0]?.end("second half");
    expect(await body).toBe("first half, second half");
    expect(response.headers.connection).toBe("close");
    await stopped;
  });

  it("are cut when the grace period is over", async () => {
    await start("100ms");
    const asked = ask("/api/v1/pods").catch((error: NodeJS.ErrnoException) => error.code);
    await expect.poll(() => held.length).toBe(1);
    await gateway.shutDown();
    expect(await asked).toBe("ECONNRESET");
  });

  it.each([
    "/api/v1/pods?watch=true",
    "/api/v1/watch/pods",
    "/api/v1/namespaces/n/pods/p/log?follow=true",
  ])("are not waited for when they have no end: %s", async (path) => {
    await start("20s");
    const asked = ask(path).catch((error: NodeJS.ErrnoException) => error.code);
    await expect.poll(() => held.length).toBe(1);
    await gateway.shutDown();
    expect(await asked).toBe("ECONNRESET");
  });
});

describe("connections without a request at a shutdown", () => {
  const VERSION = "GET /version HTTP/1.1\r\nHost: a\r\n\r\n";
  const answersAndCloses = async (client: Socket): Promise<void> => {
    const answered = readToEnd(client);
    client.write(VERSION);
    await expect.poll(() => held.length).toBeGreaterThan(0);
    held.pop()?.end("answered");
    const { text: answer, isClean } = await answered;
    expect(answer).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\nConnection: close\r\n[\s\S]*answered/i);
    expect(isClean).toBe(true);
  };

  it("are answered once when they had just been accepted", async () => {
    await start("20s");
    const client = await openClient(portOf());
    // Accepted behind it.
    const later = ask("/version");
    await expect.poll(() => held.length).toBe(1);
    held.pop()?.end();
    await later;
    const stopped = gateway.shutDown();
    await untilRefused(portOf());
    await answersAndCloses(client);
    await stopped;
  });

  it("are answered once when only the system had accepted them", async () => {
    await start("20s");
    const clients = Array.from({ length: 20 }, () => connect(portOf(), "127.0.0.1").on("error", () => {}));
    await new Promise(process.nextTick);
    const stopped = gateway.shutDown();
    for (const client of clients) await answersAndCloses(client);
    await stopped;
  });

  it("do not hold it up past the grace period", async () => {
    await start("100ms");
    const client = await openClient(portOf());
    const ended = readToEnd(client);
    await gateway.shutDown();
    expect((await ended).text).toBe("");
  });
});
