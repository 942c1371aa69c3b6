import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { foreignBytes, type SeededBackend, startSeededBackend } from "../../../support/seeded-answers.ts";
import { startTestGateway, type TestGateway } from "../../../support/test-gateway.ts";

describe("behind the API leg, of an API server that requests are forwarded to,", () => {
  let apiServer: SeededBackend;
  let gateway: TestGateway;

  beforeAll(async () => {
    apiServer = await startSeededBackend("http/1.1");
    gateway = await startTestGateway({
      configuration: { upstreamAPIServer: { url: `http://127.0.0.1:${apiServer.port}` } },
    });
  });
  afterAll(async () => {
    await gateway?.stop();
    await apiServer?.stop();
  });

  it.each(["HTTP/1.1", "HTTP/2"] as const)("clients of %s that pause get their own bytes", async (client) => {
    const headers = { authorization: `Bearer ${gateway.token}` };
    expect(await foreignBytes(client, gateway.apiServerUrl, headers)).toEqual([]);
  });
});
