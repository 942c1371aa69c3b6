import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { AccessGateway } from "../../../support/access-gateway.ts";
import { answering, listenRaw, until } from "../../../support/http/loopback.ts";
import { TunnelProxy } from "../../../support/tunnel-proxy.ts";

const BEARER = { Authorization: "Bearer egress-token" };
const CREDENTIALS = "gateway:pr0xy-s3cret";
const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(proxyPort: number, more: object = {}): Promise<AccessGateway> {
  const gateway = await AccessGateway.start((folder) => {
    writeFileSync(path.join(folder, "tokens.csv"), "egress-token,ann,1\n");
    writeFileSync(path.join(folder, "credentials"), `${CREDENTIALS}\n`);
    const egressProxy = { url: `http://127.0.0.1:${proxyPort}`, credentialsFile: "credentials" };
    return { authentication: { tokenAuthFile: "tokens.csv" }, kubelet: { egressProxy, ...more } };
  });
  cleanups.push(() => gateway.stop());
  return gateway;
}

describe("kubelet.spareConnections", () => {
  it.each([
    [0, 1, 2],
    [1, 2, 3],
  ])("%i: a first session dials the node %i times, and a second up to %i", async (spareConnections, first, second) => {
    const proxy = await TunnelProxy.start();
    cleanups.push(() => proxy.close());
    const gateway = await start(proxy.port, { spareConnections });
    expect((await gateway.exec({ headers: BEARER })).status).toBe(101);
    await until(() => proxy.requests.length === first, "the first has dialled");
    expect((await gateway.exec({ headers: BEARER })).status).toBe(101);
    await until(() => proxy.requests.length === second, "the second has dialled");
  });
});

describe("kubelet.egressProxy", () => {
  it("carries sessions to nodes, with its credentials, which stand in no log", async () => {
    const proxy = await TunnelProxy.start();
    cleanups.push(() => proxy.close());
    const gateway = await start(proxy.port);
    expect((await gateway.exec({ headers: BEARER })).status).toBe(101);
    const [request] = proxy.requests;
    expect(request?.headers["proxy-authorization"]).toBe(
      `Basic ${Buffer.from(CREDENTIALS).toString("base64")}`,
    );
    const said = gateway.logLines.join("") + (await gateway.metric("")).join("");
    expect(said).not.toContain("pr0xy-s3cret");
    expect(said).not.toContain(Buffer.from(CREDENTIALS).toString("base64"));
  });

  it("that refuses is named to the client", async () => {
    const proxy = await listenRaw(answering("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"));
    cleanups.push(proxy.close);
    const gateway = await start(proxy.port);
    const answer = await gateway.exec({ headers: BEARER });
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.body).message).toMatch(
      /^error dialing backend: proxy error from 127\.0\.0\.1:\d+ while dialing 127\.0\.0\.1:\d+, code 407: 407 Proxy Authentication Required$/,
    );
  });

  it("does not lead to addresses that no node may have", async () => {
    const proxy = await TunnelProxy.start();
    cleanups.push(() => proxy.close());
    const gateway = await start(proxy.port, { allowedAddresses: [] });
    const answer = await gateway.exec({ headers: BEARER });
    expect(JSON.parse(answer.body).message).toContain("address not allowed: 127.0.0.1");
    expect(proxy.requests).toEqual([]);
  });
});
