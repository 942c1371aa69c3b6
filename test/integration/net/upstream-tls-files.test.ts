import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get, request } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { HttpUpstream } from "../../../packages/client/src/http/upstream/http-upstream.ts";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";
import { testUpstreams } from "../../support/test-upstreams.ts";

const POLL = { timeout: 30_000, interval: 20 };

let folder: string;
let authority: TestCertificate;
let server: Server;
const file = (name: string): string => path.join(folder, name);
const trust = () => ({
  certificateAuthorityFile: file("ca.crt"),
  clientCertificateFile: file("client.crt"),
  clientKeyFile: file("client.key"),
  insecureSkipTLSVerify: false,
});

async function writeClient(commonName: string): Promise<void> {
  const { cert, key } = await issueCertificate({ commonName }, authority, { usage: "client" });
  writeFileSync(file("client.crt"), cert);
  writeFileSync(file("client.key"), key);
}

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-upstreams-"));
  authority = await issueCertificate({ commonName: "authority" });
  const serving = await issueCertificate({ commonName: "server" }, authority, { addresses: ["127.0.0.1"] });
  server = createServer(
    { ...serving, ca: authority.cert, requestCert: true, rejectUnauthorized: false },
    (incoming, response) => {
      response.end((incoming.socket as TLSSocket).getPeerCertificate().subject?.CN ?? "nobody");
    },
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  writeFileSync(file("ca.crt"), authority.cert);
  await writeClient("first");
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true });
});

async function start() {
  const errors: string[] = [];
  const noted: string[] = [];
  const upstreams = testUpstreams({
    logger: {
      info: () => {},
      error: (fields) => void errors.push(String((fields as { error?: Error }).error)),
    },
    onRead: (use, certificate) => void noted.push(`${use} ${certificate}`),
  });
  const { port } = server.address() as AddressInfo;
  const endpoint = await upstreams.endpoint("kubelet", `https://127.0.0.1:${port}`, trust());
  const upstream = new HttpUpstream({ endpoint });
  const ask = () =>
    new Promise<string>((resolve, reject) => {
      get({ agent: upstream.agent, host: "127.0.0.1", port, path: "/" }, async (response) => {
        let text = "";
        for await (const part of response) text += part;
        resolve(text);
      }).on("error", reject);
    });
  return { upstreams, upstream, ask, errors, noted };
}

describe("files of TLS to an upstream", () => {
  it("are followed: idle connections of the old certificate serve no further request", async () => {
    const { upstream, ask, noted, errors } = await start();
    expect([await ask(), await ask()]).toEqual(["first", "first"]);
    await writeClient("second");
    await expect.poll(ask, POLL).toBe("second");
    expect(errors.filter((each) => !each.includes("does not match"))).toEqual([]);
    expect(noted).toEqual(["kubelet client", "kubelet authority", "kubelet client", "kubelet authority"]);
    upstream.close();
  });

  it("trust no authority that was taken away, and the one that took its place", async () => {
    const { upstream, ask } = await start();
    expect(await ask()).toBe("first");
    const other = await issueCertificate({ commonName: "other" });
    writeFileSync(file("ca.crt"), other.cert);
    await expect
      .poll(() => ask().catch((error: Error) => error.message), POLL)
      .toMatch(/unknown authority|x509|certificate/);
    writeFileSync(file("ca.crt"), `${other.cert}\n${authority.cert}`);
    await expect.poll(() => ask().catch(() => ""), POLL).toBe("first");
    upstream.close();
  });

  it("stay where a file of authorities has none, and an error says so", async () => {
    const { upstream, ask, errors, noted } = await start();
    writeFileSync(file("ca.crt"), "no certificate");
    await expect.poll(() => errors.join(), POLL).toContain("failed to find any PEM data");
    expect(await ask()).toBe("first");
    expect(noted).toHaveLength(2);
    upstream.close();
  });

  it.each([
    "another kind",
    "another certificate",
  ])("stay where a key of %s came alone, and an error says so", async (which) => {
    const { upstream, ask, errors } = await start();
    const key =
      which === "another kind"
        ? (await createSelfSignedCertificate(["x"], "x", "rsa")).keyPem
        : (await issueCertificate({ commonName: "x" })).key;
    writeFileSync(file("client.key"), key);
    await expect.poll(() => errors.join(), POLL).toContain("tls: private key");
    expect(await ask()).toBe("first");
    // Without a watch's notice, as SIGHUP has it.
    await writeClient("third");
    await expect.poll(ask, POLL).toBe("third");
    upstream.close();
  });
});

it("a kubelet's exchange that runs while certificates change keeps its connection", async () => {
  const { upstream, upstreams } = await start();
  const { port } = server.address() as AddressInfo;
  const running = request({ agent: upstream.agent, host: "127.0.0.1", port, path: "/", method: "POST" });
  const answer = new Promise<string>((resolve, reject) => {
    running.on("error", reject).on("response", async (response) => {
      let text = "";
      for await (const part of response) text += part;
      resolve(text);
    });
  });
  await new Promise<void>((resolve) => running.once("socket", () => resolve()));
  await writeClient("second");
  await upstreams.reload();
  running.end();
  expect(await answer).toBe("first");
  upstream.close();
});
