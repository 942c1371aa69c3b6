import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createSecureServer as createH2, createServer as createH2c } from "node:http2";
import { createServer as createHttps } from "node:https";
import type { AddressInfo, Server as NetServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { ConfigurationError } from "../../../../packages/client/src/config/configuration-error.ts";
import { UsageError } from "../../../../src/cli/command.ts";
import { runCommand } from "../../../../src/cli/command-line.ts";
import { oneLine } from "../../../../src/cli/probe/probe-watch.ts";
import { closedPort } from "../../../support/misbehaving-servers.ts";
import { Sluice } from "../../../support/sluice.ts";
import { issueCertificate } from "../../../support/test-certificates.ts";

let http: Server;
let h2c: NetServer;
let tls: NetServer;
let mutualTls: NetServer;
let folder: string;
/** Statuses that the HTTP server gives, one after the other; then 200. */
const statuses: number[] = [];

const portOf = (server: NetServer) => (server.address() as AddressInfo).port;
const listen = (server: NetServer) =>
  new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-probe-cli-"));
  http = createServer((request, response) => {
    const status = request.url === "/missing" ? 404 : (statuses.shift() ?? 200);
    response.writeHead(status).end(`${request.headers["user-agent"]}`);
  });
  h2c = createH2c((_, response) => response.end("two"));
  const { cert, key } = await issueCertificate({ commonName: "the-pod" });
  tls = createHttps({ cert, key }, (_, response) => response.end("tls"));
  mutualTls = createH2({ cert, key, ca: cert, requestCert: true });
  await Promise.all([http, h2c, tls, mutualTls].map(listen));
});
afterAll(async () => {
  for (const server of [http, h2c, tls, mutualTls]) server.close();
  await rm(folder, { recursive: true });
});
afterEach(() => {
  vi.restoreAllMocks();
});

async function sluiceProbe(...args: string[]): Promise<{ code: number; text: string }> {
  const written: string[] = [];
  vi.spyOn(process.stdout, "write").mockImplementation((chunk) => written.push(String(chunk)) > 0);
  const code = await runCommand("probe", args);
  return { code, text: written.join("") };
}

describe("sluice probe URL", () => {
  it("tells verdict, latency and what was on the wire", async () => {
    const { code, text } = await sluiceProbe(`http://127.0.0.1:${portOf(http)}/healthz?x=1`);
    expect(code).toBe(0);
    expect(text).toMatch(/^Success {2}httpGet http:\/\/127\.0\.0\.1:\d+\/healthz\?x=1\n/);
    expect(text).toMatch(/ latency +\d+\.\d ms\n/);
    expect(text).toMatch(/ message +kube-probe\/1\.37\n/);
    expect(text).toMatch(/ protocol +http\/1\.1\n/);
    expect(text).toMatch(/ status +200\n/);
  });

  it("over h2c, and with the certificate's subject over TLS", async () => {
    const two = await sluiceProbe(`http://127.0.0.1:${portOf(h2c)}/`, "--protocol", "HTTP2");
    expect(two.text).toMatch(/ protocol +h2c\n/);
    const secure = await sluiceProbe(`https://127.0.0.1:${portOf(tls)}/`);
    expect(secure).toMatchObject({
      code: 0,
      text: expect.stringMatching(/ certificate +CN=the-pod, .*\(not verified\)/),
    });
    const tcp = await sluiceProbe(`tcp://127.0.0.1:${portOf(tls)}`);
    expect(tcp.code).toBe(0);
  });

  it.each([
    [
      "HTTP2 against HTTP/1.1",
      () => [`http://127.0.0.1:${portOf(http)}/`, "--protocol", "HTTP2"],
      /HTTP\/1\.1 only/,
    ],
    [
      "HTTP2 against TLS",
      () => [`http://127.0.0.1:${portOf(tls)}/`, "--protocol", "HTTP2"],
      /expects TLS.*scheme: HTTPS/,
    ],
    ["HTTP/1.1 against h2c", () => [`http://127.0.0.1:${portOf(h2c)}/`], /set `protocol: HTTP2`/],
    ["HTTP against TLS", () => [`http://127.0.0.1:${portOf(tls)}/`], /expects TLS: set `scheme: HTTPS`/],
    ["HTTPS against HTTP", () => [`https://127.0.0.1:${portOf(http)}/`], /speaks no TLS: set `scheme: HTTP`/],
    ["gRPC against TLS", () => [`grpc://127.0.0.1:${portOf(tls)}`, "--timeout", "300ms"], /set `mode: TLS`/],
    [
      "gRPC TLS without h2",
      () => [`grpc://127.0.0.1:${portOf(tls)}`, "--mode", "TLS", "--timeout", "300ms"],
      /does not negotiate h2/,
    ],
    [
      "gRPC TLS against plaintext",
      () => [`grpc://127.0.0.1:${portOf(h2c)}`, "--mode", "TLS", "--timeout", "300ms"],
      /take `mode: TLS` away/,
    ],
    [
      "gRPC TLS with the gate off",
      () => [
        `grpc://127.0.0.1:${portOf(tls)}`,
        "--mode",
        "TLS",
        "--timeout",
        "300ms",
        "--feature-gates",
        "GRPCContainerProbeTLS=false",
      ],
      /gate GRPCContainerProbeTLS is off/,
    ],
    [
      "gRPC TLS against mTLS",
      () => [`grpc://127.0.0.1:${portOf(mutualTls)}`, "--mode", "TLS", "--timeout", "300ms"],
      /client certificate \(mTLS\)/,
    ],
    [
      "gRPC against HTTP/1.1",
      () => [`grpc://127.0.0.1:${portOf(http)}`, "--timeout", "300ms"],
      /no gRPC server/,
    ],
    [
      "a path that is not there",
      () => [`http://127.0.0.1:${portOf(http)}/missing`],
      /does not know the path/,
    ],
    [
      "a gate that is off",
      () => [
        `http://127.0.0.1:${portOf(http)}/missing`,
        "--protocol",
        "HTTP2",
        "--feature-gates",
        "H2CContainerProbe=false",
      ],
      /gate H2CContainerProbe is off/,
    ],
  ])("likely cause: %s", async (_, args, cause) => {
    const { code, text } = await sluiceProbe(...args());
    expect(code).toBe(1);
    expect(text).toMatch(/^Failure /);
    expect(/ likely cause +(.*)/.exec(text)?.[1]).toMatch(cause);
  });

  it("likely cause: nobody listens", async () => {
    const { text } = await sluiceProbe(`tcp://127.0.0.1:${await closedPort()}`);
    expect(text).toMatch(/ likely cause +Nothing listens there/);
  });

  it.each([
    [["nowhere"], "not an http://"],
    [["grpc://host"], "needs a port"],
    [["http://host/", "--mode", "TLS"], "--mode does not apply to http://"],
    [["https://host/", "--protocol", "HTTP2"], "https negotiates HTTP/2 by itself"],
    [["http://host/", "--protocol", "h2c"], "--protocol h2c: must be HTTP1 or HTTP2"],
    [["http://host/", "--header", "x"], 'no "Name: value"'],
    [["http://host/", "--timeout", "5"], 'must be a duration such as "2s"'],
    [["http://host/", "--rounds", "0", "--watch"], "--rounds 0: must be a number"],
    [["http://host/", "--kind", "x"], "--kind must be"],
    [["http://host/", "--feature-gates", "X=true"], "unrecognized feature gate: X"],
    [[], "one URL or one -f FILE"],
  ])("%j is refused", async (args, message) => {
    await expect(runCommand("probe", args)).rejects.toThrow(UsageError);
    await expect(runCommand("probe", args)).rejects.toThrow(message);
  });

  it("an exec probe needs the container's runtime, and nothing else takes one", async () => {
    const file = path.join(folder, "exec.yaml");
    writeFileSync(
      file,
      `apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  containers:
  - name: main
    image: web
    livenessProbe: { exec: { command: [sh, -c, "exit 0"] } }
    readinessProbe: { tcpSocket: { port: 80 } }
`,
    );
    const of = (kind: string, ...more: string[]) =>
      runCommand("probe", ["-f", file, "--kind", kind, ...more]);
    const endpoint = ["--runtime-endpoint", "unix:///run/no.sock"];
    await expect(of("liveness")).rejects.toThrow("an exec probe needs --runtime-endpoint");
    await expect(of("liveness", "--runtime-endpoint", "http://x")).rejects.toThrow(
      "must be a unix socket such as",
    );
    await expect(of("readiness", "--pod-ip", "127.0.0.1", ...endpoint)).rejects.toThrow("is for exec probes");
    await expect(runCommand("probe", ["tcp://127.0.0.1:80", ...endpoint])).rejects.toThrow(
      "does not apply to tcp://",
    );
  });

  it("shows no control characters of a server's", () => {
    expect(oneLine("a\u001b[31mb\r\nc\u009b\n")).toBe("a\u{fffd}[31mb | c\u{fffd}");
    expect(oneLine("x".repeat(600))).toHaveLength(503);
  });
});

describe("sluice probe -f", () => {
  function manifest(probes: string): string {
    const file = path.join(folder, "pod.yaml");
    const text = `apiVersion: v1
kind: Pod
metadata: { name: web }
spec:
  containers:
  - name: main
    image: web
    ports: [{ name: web, containerPort: ${portOf(http)} }, { name: two, containerPort: ${portOf(h2c)} }]
${probes}`;
    writeFileSync(file, text);
    return file;
  }
  const LIVENESS = "    livenessProbe: { httpGet: { port: two, protocol: HTTP2 } }\n";
  const READINESS = "    readinessProbe: { httpGet: { port: web, path: /ready }, timeoutSeconds: 2 }\n";

  it("runs the probe of a container, ports by name", async () => {
    const file = manifest(LIVENESS + READINESS);
    const asked = ["-f", file, "--container", "main", "--pod-ip", "127.0.0.1", "--kind"];
    const readiness = await sluiceProbe(...asked, "readiness");
    expect(readiness).toMatchObject({ code: 0, text: expect.stringContaining("/ready") });
    const liveness = await sluiceProbe(...asked, "liveness");
    expect(liveness.text).toMatch(/ protocol +h2c/);
  });

  it("says what has to be chosen, and what is missing", async () => {
    const file = manifest(LIVENESS + READINESS);
    await expect(runCommand("probe", ["-f", file, "--pod-ip", "127.0.0.1"])).rejects.toThrow(
      "--kind (liveness, readiness)",
    );
    await expect(runCommand("probe", ["-f", file, "--kind", "startup"])).rejects.toThrow(
      'has no probe "startup"',
    );
    await expect(runCommand("probe", ["-f", file, "--container", "x"])).rejects.toThrow(
      'has no container "x"',
    );
    await expect(runCommand("probe", ["-f", file, "--kind", "liveness"])).rejects.toThrow(
      "--pod-ip IP is needed",
    );
  });

  it("refuses a bad manifest in the API server's words", async () => {
    const file = manifest("    livenessProbe: { httpGet: { port: 0 } }\n");
    await expect(runCommand("probe", ["-f", file, "--pod-ip", "127.0.0.1"])).rejects.toThrow(
      ConfigurationError,
    );
    await expect(runCommand("probe", ["-f", file, "--pod-ip", "127.0.0.1"])).rejects.toThrow(
      "spec.containers[0].livenessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive",
    );
  });
});

describe("sluice probe --watch", () => {
  const watch = (...more: string[]) =>
    sluiceProbe(`http://127.0.0.1:${portOf(http)}/`, "--watch", "--period", "20ms", ...more);
  const rowsOf = (text: string) => text.split("\n").filter((line) => /^ +\d+ /.test(line));

  it("counts rows in a row as the kubelet does", async () => {
    statuses.push(200, 500, 500, 500, 200);
    const { code, text } = await watch("--rounds", "5", "--failure-threshold", "3");
    expect(text).toMatch(
      /^Readiness probe, httpGet .*: every 0\.02 s, time-out 1 s, thresholds 1 up, 3 down\n/,
    );
    expect(
      rowsOf(text).map((row) =>
        row
          .replace(/ +\d+\.\d ms/, "")
          .replace(/ {2,}/g, " | ")
          .trim(),
      ),
    ).toEqual([
      expect.stringMatching(/^\|? ?1 \| Success \| 1\/1 Success \| ready/),
      expect.stringMatching(
        /2 \| Failure \| 1\/3 Failure \| ready \| HTTP probe failed with statuscode: 500/,
      ),
      expect.stringMatching(/3 \| Failure \| 2\/3 Failure \| ready/),
      expect.stringMatching(/4 \| Failure \| 3\/3 Failure \| not ready/),
      expect.stringMatching(/5 \| Success \| 1\/1 Success \| ready/),
    ]);
    expect(code).toBe(0);
  });

  it("goes on as a program of its own, whose rounds are longer apart than anything else that it waits for", async () => {
    statuses.push(200, 500, 500);
    const url = `http://127.0.0.1:${portOf(http)}/`;
    const args = ["probe", url, "--watch", "--period", "100ms", "--rounds", "3", "--failure-threshold", "2"];
    const { exitCode, stdout } = await new Sluice({}).run(args);
    expect(rowsOf(stdout)).toHaveLength(3);
    expect(exitCode).toBe(1);
  });

  it("liveness: says where the kubelet restarts, and goes on with the next container", async () => {
    statuses.push(500, 500, 200);
    const { code, text } = await watch("--rounds", "3", "--kind", "liveness", "--failure-threshold", "2");
    expect(text).toContain("the kubelet restarts the container here (1)");
    expect(rowsOf(text)).toHaveLength(3);
    expect(rowsOf(text)[2]).toMatch(/alive/);
    expect(code).toBe(0);
  });

  it("startup: ends when the container has started", async () => {
    statuses.push(500, 500);
    const { code, text } = await watch("--kind", "startup", "--failure-threshold", "30");
    expect(rowsOf(text).map((row) => /(not )?started/.exec(row)?.[0])).toEqual([
      "not started",
      "not started",
      "started",
    ]);
    expect(code).toBe(0);
  });
});
