import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ProbeHandler } from "../../src/api/probe-objects.ts";
import type { ProbeResult } from "../../src/probes/probe-result.ts";
import { runProbe } from "../../src/probes/run-probe.ts";
import { evidenceTable } from "../support/evidence-table.ts";
import { startGrpcHealthServer } from "../support/grpc-health-server.ts";
import { GoProbePrograms } from "../support/kubelet-prober.ts";
import { NginxProcess } from "../support/nginx-process.ts";
import { describeReal, stateOf } from "../support/real-parts.ts";
import { issueCertificate, type TestCertificate } from "../support/test-certificates.ts";
import { earlierTimeWaits, hasTcpTable, timeWaitsOf } from "../support/time-waits.ts";

const TIMEOUT_MS = 1_000;
/** Twenty probes at once on a busy machine may take longer than that: a cell that is not as expected is tried once more, alone. */
const PATIENT_TIMEOUT_MS = 10_000;

const PROBES = ["HTTP1", "HTTP2", "gRPC", "gRPC TLS"] as const;
type ProbeName = (typeof PROBES)[number];
const SERVERS = ["HTTP/1.1", "h2c", "TLS h2", "gRPC plaintext", "gRPC TLS"] as const;
type ServerName = (typeof SERVERS)[number];

function handlerOf(probe: ProbeName, port: number): ProbeHandler {
  switch (probe) {
    case "HTTP1":
      return { httpGet: { port, protocol: "HTTP1" } };
    case "HTTP2":
      return { httpGet: { port, protocol: "HTTP2" } };
    case "gRPC":
      return { grpc: { port } };
    case "gRPC TLS":
      return { grpc: { port, mode: "TLS" } };
  }
}

const LOOKED_LIKE_HTTP1 =
  /http2: failed reading the frame payload: http2: frame too large, note that the frame header looked like an HTTP\/1\.1 header$/;
/** How the other side shows that it does not understand, if it does: by bytes of its own protocol, or by hanging up. */
const NO_HTTP1 =
  /malformed HTTP response|EOF$|connection reset by peer$|malformed HTTP version|statuscode: 4\d\d$/;
const NO_H2 = /EOF$|connection reset by peer$|http2: frame too large/;
const NOT_CONNECTED =
  /^timeout: failed to connect service "127\.0\.0\.1:\d+" within 10?s: context deadline exceeded$/;
const FOREIGN =
  /^error: health rpc probe failed: rpc error: code = Unknown desc = unexpected HTTP status code received from server: (200 \(OK\)|405 \(.*\)); (transport: received unexpected content-type "text\/(plain|html).*"|malformed header: missing HTTP content-type)$/;

/** Verdict and text of each cell. */
const EXPECTED: Readonly<Record<ProbeName, Readonly<Record<ServerName, readonly [string, RegExp]>>>> = {
  HTTP1: {
    "HTTP/1.1": ["Success", /^(nginx|HTTP\/1\.1)$/],
    h2c: ["Failure", NO_HTTP1],
    "TLS h2": ["Failure", /^HTTP probe failed with statuscode: 400$/],
    "gRPC plaintext": ["Failure", NO_HTTP1],
    "gRPC TLS": ["Failure", NO_HTTP1],
  },
  HTTP2: {
    "HTTP/1.1": ["Failure", LOOKED_LIKE_HTTP1],
    h2c: ["Success", /^(nginx|HTTP\/2\.0)$/],
    "TLS h2": ["Failure", NO_H2],
    "gRPC plaintext": ["Failure", /^HTTP probe failed with statuscode: 4\d\d$/],
    "gRPC TLS": ["Failure", NO_H2],
  },
  gRPC: {
    "HTTP/1.1": ["Failure", NOT_CONNECTED],
    h2c: ["Failure", FOREIGN],
    "TLS h2": ["Failure", NOT_CONNECTED],
    "gRPC plaintext": ["Success", /^service healthy$/],
    "gRPC TLS": ["Failure", NOT_CONNECTED],
  },
  "gRPC TLS": {
    "HTTP/1.1": ["Failure", NOT_CONNECTED],
    h2c: ["Failure", NOT_CONNECTED],
    "TLS h2": ["Failure", FOREIGN],
    "gRPC plaintext": ["Failure", NOT_CONNECTED],
    "gRPC TLS": ["Success", /^service healthy$/],
  },
};

/** Servers of one maker; a maker need not have all kinds. */
type Ports = Partial<Record<ServerName, number>>;

const tables: string[] = [];
/** Each text and its letter. */
const texts = new Map<string, string>();

afterAll(() => {
  if (process.env.SLUICE_WRITE_DOCS !== "1" || tables.length === 0) return;
  const text = `# Probes by server

Each kind of probe succeeds only with its own server; other servers give the kubelet's texts. Time-outs are
1 s; a gRPC probe that cannot connect tries until then, as the kubelet's. Letters stand for the texts below
the tables. Written by
\`SLUICE_WRITE_DOCS=1 npx vitest run --project real test/real/probe-matrix.test.ts\`.

${tables.join("\n")}
## Texts

${[...texts].map(([text, letter]) => `- ${letter}: \`${text}\``).join("\n")}
`;
  writeFileSync(path.resolve(import.meta.dirname, "../../docs/evidence/probe-matrix.md"), text);
});

async function checkMatrix(maker: string, ports: Ports): Promise<void> {
  const servers = SERVERS.filter((name) => ports[name] !== undefined);
  const rows = await Promise.all(
    PROBES.map(async (probe) => ({
      probe,
      cells: await Promise.all(servers.map((server) => run(probe, ports[server] ?? 0))),
    })),
  );
  for (const { probe, cells } of rows)
    for (const [index, server] of servers.entries())
      if (!isExpected(probe, server, cells[index] as ProbeResult))
        cells[index] = await run(probe, ports[server] ?? 0, PATIENT_TIMEOUT_MS);
  const table = evidenceTable(
    ["probe", ...servers],
    rows.map(({ probe, cells }) => [probe, ...cells.map((cell) => cellText(cell))]),
  );
  tables.push(`## ${maker}\n\n${table}\n`);
  const wrong = rows.flatMap(({ probe, cells }) =>
    cells.flatMap((cell, index) => {
      const server = servers[index] as ServerName;
      return isExpected(probe, server, cell) ? [] : [{ probe, server, ...cell }];
    }),
  );
  expect(wrong).toEqual([]);
}

function isExpected(probe: ProbeName, server: ServerName, { result, message, error }: ProbeResult): boolean {
  const [verdict, pattern] = EXPECTED[probe][server];
  return result === verdict && error === undefined && pattern.test(message);
}

function run(probe: ProbeName, port: number, timeoutMs = TIMEOUT_MS): Promise<ProbeResult> {
  return runProbe(
    handlerOf(probe, port),
    { host: "127.0.0.1", containerPorts: [] },
    {
      timeoutMs,
      userAgentVersion: "1.37",
      gates: { H2CContainerProbe: true, GRPCContainerProbeTLS: true },
    },
  );
}

function cellText({ result, message }: ProbeResult): string {
  const text = message.replace(/127\.0\.0\.1:\d+/g, "ADDRESS");
  const letter = texts.get(text) ?? String.fromCharCode("A".charCodeAt(0) + texts.size);
  texts.set(text, letter);
  return result === "Success" ? `**Success** ${letter}` : `${result} ${letter}`;
}

/** grpc-go and nginx ignore a GOAWAY, and are reset. */
async function checkTimeWaits(ports: Readonly<Record<ProbeName, number>>): Promise<void> {
  for (const name of PROBES) {
    const port = ports[name];
    const earlier = hasTcpTable ? earlierTimeWaits(port) : undefined;
    expect(await run(name, port, PATIENT_TIMEOUT_MS)).toMatchObject({ result: "Success" });
    if (hasTcpTable) expect(await timeWaitsOf(port, earlier), name).toMatchObject({ client: 0 });
  }
}

let certificate: TestCertificate;
const stops: (() => void | Promise<void>)[] = [];

beforeAll(async () => {
  certificate = await issueCertificate({ commonName: "probed" });
});
afterAll(async () => {
  for (const stop of stops) await stop();
});

describeReal("nginx", "nginx and grpc-js", () => {
  it("gives each cell its verdict and text", async () => {
    const nginx = new NginxProcess();
    stops.push(() => nginx.stop());
    const { http1, h2c, tlsH2 } = await nginx.start(certificate);
    const plain = await startGrpcHealthServer();
    const secure = await startGrpcHealthServer(certificate);
    stops.push(plain.stop, secure.stop);
    await checkMatrix(`nginx ${stateOf("nginx").versions[0]} and @grpc/grpc-js`, {
      "HTTP/1.1": http1,
      h2c,
      "TLS h2": tlsH2,
      "gRPC plaintext": plain.port,
      "gRPC TLS": secure.port,
    });
  });

  it("no probe keeps TIME_WAIT", async () => {
    const nginx = new NginxProcess();
    stops.push(() => nginx.stop());
    const { http1, h2c } = await nginx.start(certificate);
    const plain = await startGrpcHealthServer();
    const secure = await startGrpcHealthServer(certificate);
    stops.push(plain.stop, secure.stop);
    await checkTimeWaits({ HTTP1: http1, HTTP2: h2c, gRPC: plain.port, "gRPC TLS": secure.port });
  });
});

describeReal("go", "net/http and grpc-go", () => {
  it("gives each cell its verdict and text", async () => {
    const go = new GoProbePrograms();
    stops.push(() => go.stop());
    const served = await go.startServers();
    await checkMatrix(`net/http and grpc-go (Go ${stateOf("go").versions[0]})`, {
      "HTTP/1.1": served.http1?.port ?? 0,
      h2c: served.h2c?.port ?? 0,
      "TLS h2": served.tlsH2?.port ?? 0,
      "gRPC plaintext": served.grpc?.port ?? 0,
      "gRPC TLS": served.grpcTLS?.port ?? 0,
    });
  });

  it("no probe keeps TIME_WAIT", async () => {
    const go = new GoProbePrograms();
    stops.push(() => go.stop());
    const { http1, h2c, grpc, grpcTLS } = await go.startServers();
    const portOf = (served?: { port: number }): number => served?.port ?? 0;
    await checkTimeWaits({
      HTTP1: portOf(http1),
      HTTP2: portOf(h2c),
      gRPC: portOf(grpc),
      "gRPC TLS": portOf(grpcTLS),
    });
  });
});
