import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
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

describe("plain requests at a shutdown", () => {
  it("are answered whole within the grace period, and their connections closed", async () => {
    await start("20s");
    const asked = ask("/api/v1/pods");
    await expect.poll(() => held.length).toBe(1);
    const stopped = gateway.shutDown();
    await expect.poll(() => fetch(gateway.apiServerUrl).catch(() => "refused")).toBe("refused");
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
