import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { webhookClient } from "../../../../../src/access/webhook-client.ts";
import { issueCertificate } from "../../../../support/test-certificates.ts";
import { testUpstreams } from "../../../../support/test-upstreams.ts";

type WebhookClient = Awaited<ReturnType<typeof webhookClient>>;

const authority = await issueCertificate({ commonName: "authority" });
const serving = await issueCertificate({ commonName: "authz.example.com" }, authority, {
  addresses: ["127.0.0.1"],
  names: ["authz.example.com"],
});
const gateway = await issueCertificate({ commonName: "gateway" }, authority);
const inline = (pem: string) => Buffer.from(pem).toString("base64");

let folder: string;
let server: Server;
let client: WebhookClient | undefined;
const asked: { url: string | undefined; authorization: string | undefined; caller: unknown }[] = [];

beforeEach(async () => {
  asked.length = 0;
  folder = mkdtempSync(path.join(tmpdir(), "sluice-webhook-kubeconfig-"));
  const options = {
    cert: serving.cert,
    key: serving.key,
    ca: authority.cert,
    requestCert: true,
    rejectUnauthorized: false,
  };
  server = createServer(options, (request, response) => {
    const caller = (request.socket as TLSSocket).getPeerCertificate().subject?.CN;
    asked.push({ url: request.url, authorization: request.headers.authorization, caller });
    request.resume();
    response.end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  client?.stop();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

const ask = async (cluster: object, user: object) => {
  const file = path.join(folder, "webhook.conf");
  const { port } = server.address() as AddressInfo;
  const kubeconfig = {
    kind: "Config",
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "s", user: "u" } }],
    clusters: [{ name: "s", cluster: { server: `https://127.0.0.1:${port}`, ...cluster } }],
    users: [{ name: "u", user }],
  };
  writeFileSync(file, JSON.stringify(kubeconfig));
  client = await webhookClient(
    { kind: "kubeconfig", file },
    { defaultPath: "/never", timeoutMs: 5_000, use: "tokenReview", upstreams: testUpstreams() },
  );
  return client.ask({});
};

describe("a webhook named by a kubeconfig", () => {
  const trust = {
    "certificate-authority-data": inline(authority.cert),
    "tls-server-name": "authz.example.com",
  };

  it("is asked at its own path, with certificate and token of the file", async () => {
    await ask(trust, {
      "client-certificate-data": inline(gateway.cert),
      "client-key-data": inline(gateway.key),
      token: "first",
    });
    expect(asked).toEqual([{ url: "/", authorization: "Bearer first", caller: "gateway" }]);
  });

  it("is asked with the token file as it is at the time, which counts before the token", async () => {
    const tokenFile = path.join(folder, "token");
    writeFileSync(tokenFile, "one\n");
    await ask(trust, { tokenFile: "token", token: "unused" });
    writeFileSync(tokenFile, "two\n");
    await client?.ask({});
    expect(asked.map(({ authorization }) => authorization)).toEqual(["Bearer one", "Bearer two"]);
  });

  it("is not asked when its certificate is another's", async () => {
    await expect(ask({ ...trust, "tls-server-name": "other" }, {})).rejects.toThrow("certificate");
    expect(asked).toEqual([]);
  });

  it("names the file that can not be read or used", async () => {
    await expect(ask({ "certificate-authority": "gone.crt" }, {})).rejects.toThrow(
      "gone.crt: no such file or directory",
    );
    const key = {
      "client-certificate-data": inline(gateway.cert),
      "client-key-data": inline(serving.key),
    };
    await expect(ask(trust, key)).rejects.toThrow("webhook.conf: ");
  });
});

describe("the API server of the own cluster", () => {
  const options = () => ({
    defaultPath: "/reviews",
    timeoutMs: 5_000,
    serviceAccountFolder: folder,
    use: "tokenReview" as const,
    upstreams: testUpstreams(),
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it("is asked at its address, with the pod's token as it is at the time", async () => {
    vi.stubEnv("KUBERNETES_SERVICE_HOST", "127.0.0.1");
    vi.stubEnv("KUBERNETES_SERVICE_PORT", `${(server.address() as AddressInfo).port}`);
    writeFileSync(path.join(folder, "ca.crt"), authority.cert);
    writeFileSync(path.join(folder, "token"), "one\n");
    client = await webhookClient({ kind: "inCluster" }, options());
    await client.ask({});
    writeFileSync(path.join(folder, "token"), "two\n");
    await client.ask({});
    expect(asked.map(({ url, authorization }) => `${url} ${authorization}`)).toEqual([
      "/reviews Bearer one",
      "/reviews Bearer two",
    ]);
  });

  it("is not looked for outside of a pod", async () => {
    vi.stubEnv("KUBERNETES_SERVICE_HOST", undefined);
    await expect(webhookClient({ kind: "inCluster" }, options())).rejects.toThrow(
      "unable to load in-cluster configuration",
    );
  });
});
