import { afterEach, beforeEach, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { GatewayFiles } from "../../support/gateway-files.ts";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";
import { startTestGateway, type TestGateway } from "../../support/test-gateway.ts";

const DAY_MS = 86_400_000;
/** Every section with certificates for upstreams, and which of them it has. */
const USES: Readonly<Record<string, readonly string[]>> = {
  kubelet: ["authority", "client"],
  egressProxy: ["authority", "client"],
  upstreamAPIServer: ["authority", "client"],
  streamingGateway: ["authority"],
  tokenReview: ["authority", "client"],
  authorizationWebhook: ["authority", "client"],
  auditWebhook: ["authority", "client"],
  oidc: ["authority"],
  recordingStore: ["authority"],
  quotaStore: ["authority", "client"],
};

let files: GatewayFiles;
let gateway: TestGateway | undefined;
let authority: TestCertificate;

beforeEach(async () => {
  files = new GatewayFiles();
  authority = await issueCertificate({ commonName: "authority" });
});
afterEach(async () => {
  await gateway?.stop();
  files.remove();
});

async function writeAll(notAfter: Date): Promise<void> {
  // Long-lived, so that the bound is 30 days.
  const validity = { notBefore: new Date(notAfter.getTime() - 365 * DAY_MS), notAfter };
  const ca = await issueCertificate({ commonName: "authority" }, undefined, validity);
  const client = await issueCertificate({ commonName: "client" }, authority, validity);
  files.write("ca.crt", ca.cert);
  files.write("client.crt", client.cert);
  files.write("client.key", client.key);
}

async function start(): Promise<TestGateway> {
  const trust = {
    certificateAuthorityFile: "ca.crt",
    clientCertificateFile: "client.crt",
    clientKeyFile: "client.key",
  };
  const at = (path = "") => ({ url: `https://127.0.0.1:1${path}`, ...trust });
  return await startTestGateway(
    {
      listeners: {
        ingress: {
          httpPort: 0,
          httpsPort: 0,
          streamingGateways: [
            { name: "far", url: "https://127.0.0.1:1", certificateAuthorityFile: "ca.crt" },
          ],
        },
      },
      configuration: {
        kubelet: { ...trust, egressProxy: at() },
        upstreamAPIServer: at(),
        authentication: {
          tokenReview: at("/tokens"),
          oidc: { issuerURL: "https://127.0.0.1:1", audiences: ["a"], caFile: "ca.crt" },
        },
        authorization: { mode: ["Webhook"], webhook: at("/access") },
        audit: { webhook: at("/audit") },
        quotaStore: { ...at(), url: "rediss://127.0.0.1:1" },
        recording: {
          folder: "recordings",
          rules: [],
          s3: { endpoint: "https://127.0.0.1:1", bucket: "recordings", caFile: "ca.crt" },
        },
      },
    },
    files,
  );
}

it("certificates for every upstream are followed, by their gauge and by the log", async () => {
  const first = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 20 * DAY_MS);
  await writeAll(first);
  gateway = await start();
  const running = gateway;
  const expiries = async (): Promise<string[]> => {
    const samples = await running.readMetrics();
    return [...samples]
      .filter(([name]) => name.startsWith("sluice_upstream_certificate_expiry_timestamp_seconds"))
      .map(([name, value]) => `${name.slice(name.indexOf("{"))} ${value}`)
      .sort();
  };
  const wanted = (date: Date): string[] =>
    Object.entries(USES)
      .flatMap(([use, certificates]) =>
        certificates.map((each) => `{use="${use}",certificate="${each}"} ${date.getTime() / 1_000}`),
      )
      .sort();
  expect(await expiries()).toEqual(wanted(first));
  const soon = running.logLines.filter((line) => line.includes("a certificate expires soon"));
  expect(soon).toHaveLength(wanted(first).length);
  const second = new Date(first.getTime() + 100 * DAY_MS);
  await writeAll(second);
  await eventually("all are read again", async () => (await expiries()).join() === wanted(second).join());
  // A file alone changes nothing, and is an error that names no secret.
  const { key } = await issueCertificate({ commonName: "x" });
  files.write("client.key", key);
  await eventually("it is logged", () => running.logLines.join("").includes("does not match public key"));
  expect(await expiries()).toEqual(wanted(second));
  expect(running.logLines.join("")).not.toContain("PRIVATE KEY");
});

it("an expired certificate is said at the start, and by readiness", async () => {
  await writeAll(new Date(Date.now() - DAY_MS));
  gateway = await start();
  expect(gateway.logLines.join("")).toContain("a certificate has expired");
  const readiness = await (await fetch(new URL("/readyz?verbose", gateway.adminUrl))).text();
  expect(readiness).toMatch(/^\[\+\]certificates ok: .*the client certificate for kubelet expired /m);
});
