import { createServer } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type Server, Socket } from "node:net";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { onFault } from "../../../packages/client/src/observability/faults.ts";
import { ClientConnection } from "../../../protocols/http2/index.ts";
import type { ProbeHandler } from "../../../src/api/probe-objects.ts";
import { Http1Response } from "../../../src/probes/http/http1-response.ts";
import { evidenceTable } from "../../support/evidence-table.ts";
import { FaultInjection } from "../../support/fault-injection.ts";
import { startGrpcHealthServer } from "../../support/grpc-health-server.ts";
import { listen } from "../../support/http/loopback.ts";
import { issueCertificate } from "../../support/test-certificates.ts";
import { probe } from "../probes/probe.ts";

const HANDLERS = {
  TCP: (port: number) => ({ tcpSocket: { port } }),
  HTTP: (port: number) => ({ httpGet: { port } }),
  HTTPS: (port: number) => ({ httpGet: { port, scheme: "HTTPS" } }),
  gRPC: (port: number) => ({ grpc: { port } }),
  "gRPC over TLS": (port: number) => ({ grpc: { port, mode: "TLS" } }),
} satisfies Record<string, (port: number) => ProbeHandler>;
type Kind = keyof typeof HANDLERS;

const rows: string[][] = [];
const faults: string[] = [];
const stops: (() => unknown)[] = [];
let injection: FaultInjection;
let ports: Record<Kind, number>;

beforeAll(async () => {
  injection = new FaultInjection();
  stops.push(
    () => injection.restore(),
    onFault((where) => void faults.push(where)),
  );
  const certificate = await issueCertificate({ commonName: "probed" });
  const serve = (server: Server): Promise<number> => {
    stops.push(() => server.close());
    return listen(server);
  };
  const health = async (isTls: boolean): Promise<number> => {
    const server = await startGrpcHealthServer(isTls ? certificate : undefined);
    stops.push(() => server.stop());
    return server.port;
  };
  const http = await serve(createServer((_, response) => response.end("fine")));
  ports = {
    TCP: http,
    HTTP: http,
    HTTPS: await serve(createSecureServer(certificate, (_, response) => response.end("fine"))),
    gRPC: await health(false),
    "gRPC over TLS": await health(true),
  };
});
afterAll(() => {
  for (const stop of stops.reverse()) stop();
});

async function seenBy(kind: Kind): Promise<string> {
  faults.length = 0;
  const first = probe(HANDLERS[kind](ports[kind]), { timeoutMs: 800 });
  const { result, message } = await first;
  await expect.poll(() => faults).toEqual(["probe"]);
  expect(await probe(HANDLERS[kind](ports[kind]))).toMatchObject({ result: "Success" });
  return `${result} ${message === "" ? "" : `\`${message.replaceAll(/127\.0\.0\.1:\d+/g, "ADDRESS")}\``}`.trim();
}

const EVENTS = (Object.keys(HANDLERS) as Kind[]).flatMap((kind) => {
  const events = kind.endsWith("S") ? ["connect", "secureConnect", "data", "close"] : ["connect", "close"];
  return events.map((event) => [kind, event] as const);
});

it.each(EVENTS)("an exception ends that probe alone: %s, the socket's '%s'", async (kind, event) => {
  injection.arm((emitter, name) => {
    return emitter instanceof Socket && emitter.remotePort === ports[kind] && name === event;
  });
  if (event === "close") {
    // A socket that is closed has no address any more.
    let known: Socket | undefined;
    injection.arm((emitter, name) => {
      if (emitter instanceof Socket && emitter.remotePort === ports[kind]) known = emitter;
      return emitter === known && name === event;
    });
  }
  rows.push([kind, `socket's \`${event}\``, await seenBy(kind)]);
  expect(injection.isArmed).toBe(false);
});

it.each([
  ["HTTP", Http1Response],
  ["HTTPS", Http1Response],
  ["gRPC", ClientConnection],
  ["gRPC over TLS", ClientConnection],
] as const)("an exception ends that probe alone: %s, reading", async (kind, { prototype }) => {
  const spy = vi.spyOn(prototype, "push").mockImplementationOnce(() => {
    throw new Error("injected into push");
  });
  rows.push([kind, "reading", await seenBy(kind)]);
  spy.mockRestore();
});

it("the table is documented", async () => {
  const page = `# Injected exceptions: probes

An exception ends its own probe, as a failure unless the result is known by then. Written by
\`npx vitest run test/integration/faults --update\`.

${evidenceTable(["probe", "an exception in", "its result"], rows, [1, 0])}
`;
  await expect(page).toMatchFileSnapshot("../../../docs/evidence/faults-of-probes.md");
});
