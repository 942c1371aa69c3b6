import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, it } from "vitest";
import { askJson } from "../../../packages/client/src/http/upstream/ask-json.ts";
import type { Kubeconfig } from "../../../packages/client/src/kubernetes/kubeconfig.ts";
import { forwardingTo } from "../../../src/kubernetes/api-server-upstream.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

let server: Server;
let ends: (() => void)[];
beforeEach(() => {
  ends = [];
});
afterEach(() => {
  for (const end of ends) end();
  server.closeAllConnections();
  server.close();
});

it("callers' requests go by the authority that the kubeconfig's file has now", async () => {
  const identityOf = async () => {
    const authority = await issueCertificate({ commonName: "authority" });
    const own = await issueCertificate({ commonName: "api" }, authority, { addresses: ["127.0.0.1"] });
    return { ca: authority.cert, own };
  };
  const [before, after] = [await identityOf(), await identityOf()];
  server = createServer(before.own, (_, response) => response.end("{}"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const kubeconfig = { server: `https://127.0.0.1:${port}`, tls: { ca: before.ca }, proxyUrl: undefined };
  const forwarding = forwardingTo(
    kubeconfig as unknown as Kubeconfig,
    undefined as never,
    { forwardAs: "caller" } as never,
    5_000,
  );
  ends.push(() => forwarding.close());
  const ask = async (): Promise<unknown> => {
    const { status } = await askJson(forwarding.upstream, { method: "GET", path: "/", timeoutMs: 5_000 });
    return status;
  };
  expect(await ask()).toBe(200);
  server.setSecureContext(after.own);
  server.closeAllConnections();
  await expect(ask()).rejects.toThrow();
  kubeconfig.tls = { ca: "no certificate" };
  await expect(ask()).rejects.toThrow();
  kubeconfig.tls = { ca: after.ca };
  expect(await ask()).toBe(200);
});
