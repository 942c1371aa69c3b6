import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { get } from "node:http";
import { get as getSecurely } from "node:https";
import { connect as connectTcp } from "node:net";
import path from "node:path";
import { text } from "node:stream/consumers";
import { connect, type TLSSocket } from "node:tls";
import { afterEach, describe, expect, it, vi } from "vitest";
import { TESTER_TOKEN } from "../../support/gateway-files.ts";
import { exchangeOver, proxiedSocket } from "../../support/proxied-socket.ts";
import { endExec, SUCCESS } from "../../support/scripted-kubelet.ts";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";
import { WorkerGateway, type WorkerGatewayOptions } from "../../support/worker-gateway.ts";

let gateway: WorkerGateway;
const sockets: TLSSocket[] = [];
/** Three processes start for each test, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 90_000, expect: { poll: { timeout: 30_000 } } });
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await gateway.stop();
});

const startWithTls = async (
  certificate: TestCertificate,
  { files = {}, more = {} }: Pick<WorkerGatewayOptions, "files" | "more"> = {},
): Promise<void> => {
  gateway = await WorkerGateway.start({
    files: { "tls.crt": certificate.cert, "tls.key": certificate.key, ...files },
    more: {
      ...more,
      listeners: {
        apiServer: { port: 0, tls: { certFile: "tls.crt", keyFile: "tls.key" } },
        admin: { port: 0 },
      },
    },
  });
};

interface Handshake {
  /** To be resumed; TLS 1.3 sends it after the handshake. */
  readonly session: Promise<Buffer>;
  readonly isReused: boolean;
  readonly fingerprint: string;
}

/** Stays open, so that the next connection goes to the other worker. */
async function handshake(
  session?: Buffer,
  port = Number(gateway.authority.split(":")[1]),
): Promise<Handshake> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...(session && { session }) });
  sockets.push(socket);
  // Its worker may be killed later.
  socket.on("error", () => {});
  socket.resume();
  const next = new Promise<Buffer>((resolve) => socket.once("session", resolve));
  await once(socket, "secureConnect");
  return {
    session: next,
    isReused: socket.isSessionReused(),
    fingerprint: socket.getPeerX509Certificate()?.fingerprint256 ?? "",
  };
}

describe("listeners of two workers", () => {
  it("resume each other's TLS sessions", async () => {
    await startWithTls(await issueCertificate({ commonName: "gateway" }));
    const { session, isReused } = await handshake();
    expect(isReused).toBe(false);
    const ticket = await session;
    for (let times = 0; times < 4; times += 1) expect((await handshake(ticket)).isReused).toBe(true);
  });

  it("and those of the ingress listener", async () => {
    gateway = await WorkerGateway.start({
      more: {
        listeners: { apiServer: { port: 0 }, admin: { port: 0 }, ingress: { httpPort: 0, httpsPort: 0 } },
      },
    });
    const url = /^http:\/\/127\.0\.0\.1:\d+$/;
    // As one process reports them.
    expect(gateway.ready()).toMatchObject({
      apiServerUrl: expect.stringMatching(url),
      adminUrl: expect.stringMatching(url),
      ingress: { httpUrl: expect.stringMatching(url), httpsUrl: expect.stringMatching(/^https:/) },
      workers: 2,
    });
    const { port } = gateway.listener("ingress.https");
    const ticket = await (await handshake(undefined, port)).session;
    for (let times = 0; times < 4; times += 1) expect((await handshake(ticket, port)).isReused).toBe(true);
  });

  it("both take a new certificate when its files change", async () => {
    const [before, after] = [
      await issueCertificate({ commonName: "before" }),
      await issueCertificate({ commonName: "after" }, undefined, {
        notAfter: new Date("2050-01-01T00:00:00Z"),
      }),
    ];
    await startWithTls(before);
    const old = (await handshake()).fingerprint;
    const expiry = (): Promise<number> =>
      gateway.metric('sluice_certificate_expiry_timestamp_seconds{listener="apiServer"}');
    expect(await expiry()).toBe(Date.parse(new X509Certificate(before.cert).validTo) / 1_000);
    gateway.write("tls.crt", after.cert);
    gateway.write("tls.key", after.key);
    await expect
      .poll(async () => {
        const found = [await handshake(), await handshake()];
        for (const socket of sockets.splice(0)) socket.destroy();
        return found.every(({ fingerprint }) => fingerprint !== old);
      })
      .toBe(true);
    await expect.poll(expiry).toBe(Date.parse("2050-01-01T00:00:00Z") / 1_000);
  });

  it("are replaced with the last good files while those on disk are wrong", async () => {
    const [before, after, ca] = [
      await issueCertificate({ commonName: "before" }),
      await issueCertificate({ commonName: "after" }),
      await issueCertificate({ commonName: "users" }),
    ];
    await startWithTls(before, {
      files: { "ca.crt": ca.cert, "policy.yaml": AUDIT_POLICY },
      more: {
        authentication: { tokenAuthFile: "testers.csv", clientCAFile: "ca.crt" },
        audit: { policyFile: "policy.yaml", log: { path: "audit.log" } },
      },
    });
    const servedBy = async () => new Set([(await handshake()).fingerprint, (await handshake()).fingerprint]);
    const replace = ({ cert, key }: TestCertificate): void => {
      gateway.write("tls.crt", cert);
      gateway.write("tls.key", key);
    };
    const [first] = await servedBy();
    replace(after);
    await expect.poll(() => logged("the serving certificate was read again")).toBe(2);
    const renewed = await servedBy();
    expect(renewed.size).toBe(1);
    expect(renewed).not.toContain(first);
    for (const name of ["tls.crt", "ca.crt", "policy.yaml", "testers.csv"]) gateway.write(name, '"wrong\n');
    // With the last worker that knew them, too.
    for (const index of [0, 1]) process.kill(gateway.pidOf(index), "SIGKILL");
    await expect.poll(() => gateway.metric('sluice_workers_ended_total{cause="crash"}')).toBe(2);
    await expect.poll(() => gateway.metric("sluice_workers_ready")).toBe(2);
    expect(logged("files of the configuration are wrong, the last good ones stay in use")).toBe(2);
    expect(await servedBy()).toEqual(renewed);
    expect(await statusWithToken()).toBe(200);
    gateway.write("ca.crt", ca.cert);
    replace(before);
    await expect.poll(servedBy).toEqual(new Set([first]));
  });

  it("answer a client that has ended its side already", async () => {
    gateway = await WorkerGateway.start({});
    const [host, port] = gateway.authority.split(":");
    for (let times = 0; times < 4; times += 1) {
      const socket = connectTcp(Number(port), host);
      socket.end("GET /version HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n");
      expect(await text(socket)).toContain('"gitVersion"');
    }
  });

  it("read the headers of proxies, whose own connections are not counted", async () => {
    gateway = await WorkerGateway.start({
      more: {
        limits: { maxConnectionsPerAddress: 3 },
        listeners: { apiServer: { port: 0, proxyProtocol: { from: ["127.0.0.9"] } }, admin: { port: 0 } },
      },
    });
    const port = Number(gateway.authority.split(":")[1]);
    const exec = "/api/v1/namespaces/default/pods/web/exec?command=true";
    const request = `GET ${exec} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wrong\r\nConnection: close\r\n\r\n`;
    const clients = Array.from({ length: 8 }, (_, index) => `203.0.113.${index}`);
    const sockets = clients.map((client) => proxiedSocket(port, `PROXY TCP4 ${client} 127.0.0.1 1 2\r\n`));
    const answers = await Promise.all(sockets.map((socket) => exchangeOver(socket, request)));
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 401 /);
    const refusals = (gateway.log() ?? "").split("\n").filter((line) => line.includes('"request refused"'));
    expect(refusals.map((line) => JSON.parse(line).remoteAddress).toSorted()).toEqual(clients);
    expect(await gateway.metric("sluice_workers_connections_refused_total")).toBe(0);
    expect(await exchangeOver(proxiedSocket(port, request), "")).toBe("");
    await expect
      .poll(() => gateway.metric('sluice_connections_refused_total{reason="proxy-header-missing"}'))
      .toBe(1);
  });

  it("let an address have so many connections together, and no more", async () => {
    gateway = await WorkerGateway.start({ more: { limits: { maxConnectionsPerAddress: 3 } } });
    const [host, port] = gateway.authority.split(":");
    const open = Array.from({ length: 3 }, () => connectTcp(Number(port), host));
    await Promise.all(open.map((socket) => once(socket, "connect")));
    await expect.poll(version).toBe("refused");
    expect(await gateway.metric("sluice_workers_connections_refused_total")).toBeGreaterThan(0);
    for (const socket of open) socket.destroy();
    await expect.poll(version).toBe(200);
  });
});

const AUDIT_POLICY = JSON.stringify({
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  rules: [{ level: "Metadata" }],
});

const logged = (message: string): number => gateway.log().split(`"${message}"`).length - 1;

/** Of a request over TLS by the user of the token file. */
function statusWithToken(): Promise<number | undefined> {
  const headers = { Authorization: `Bearer ${TESTER_TOKEN}` };
  const url = `https://${gateway.authority}/api/v1/namespaces/default`;
  return new Promise((resolve, reject) => {
    getSecurely(url, { agent: false, headers, rejectUnauthorized: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on("error", reject);
  });
}

/** The status of an answer on a connection of its own, `refused` when it is closed without one. */
function version(): Promise<number | undefined | string> {
  return new Promise((resolve) => {
    const request = get(
      `http://${gateway.authority}/version`,
      { agent: false, timeout: 2_000 },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    );
    request.on("timeout", () => request.destroy(new Error("no answer")));
    request.on("error", ({ message }) => resolve(message === "no answer" ? message : "refused"));
  });
}

describe("the audit log of two workers", () => {
  it("is one file with every event, whoever carried the session", async () => {
    gateway = await WorkerGateway.start({
      script: {
        onStream: (name, _stream, session) => {
          if (name === "stdout") endExec(session, SUCCESS);
        },
      },
      more: { audit: { log: { path: "audit.log" } } },
    });
    const file = path.join(path.dirname(gateway.write("unused", "")), "audit.log");
    const clients = Array.from({ length: 10 }, () => gateway.exec("stdout=true"));
    for (const { done } of clients) expect((await done).status).toBe(SUCCESS);
    const events = () =>
      readFileSync(file, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as { auditID: string; stage: string });
    await expect.poll(() => events().length).toBe(30);
    expect(new Set(events().map(({ auditID }) => auditID)).size).toBe(10);
  });
});
