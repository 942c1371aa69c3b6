import { once } from "node:events";
import { createSecureServer, createServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import {
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type ServiceError,
  type sendUnaryData,
  status,
} from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { CheckRequest } from "../../../src/probes/grpc/check-request.ts";
import { failureReasonOf } from "../../../src/probes/worker/prober.ts";
import { closedPort } from "../../support/misbehaving-servers.ts";
import { issueCertificate } from "../../support/test-certificates.ts";
import { probe } from "./probe.ts";

const CHECK: ServiceDefinition = {
  Check: {
    path: "/grpc.health.v1.Health/Check",
    requestStream: false,
    responseStream: false,
    requestSerialize: (bytes: Buffer) => bytes,
    requestDeserialize: (bytes: Buffer) => bytes,
    responseSerialize: (bytes: Buffer) => bytes,
    responseDeserialize: (bytes: Buffer) => bytes,
  },
};

type Check = (
  call: { request: Buffer; metadata: { get(name: string): unknown[] } },
  answer: sendUnaryData<Buffer>,
) => void;
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** grpc-js, whose health service answers as told. */
async function serveGrpc(
  check: Check | undefined,
  credentials = ServerCredentials.createInsecure(),
): Promise<number> {
  const server = new Server();
  if (check !== undefined) server.addService(CHECK, { Check: check as never });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  stops.push(() => server.forceShutdown());
  return port;
}

const answering =
  (...bytes: number[]): Check =>
  (_, answer) =>
    answer(null, Buffer.from(bytes));
const refusing =
  (code: status, details: string): Check =>
  (_, answer) =>
    answer({ code, details } as ServiceError);

async function serveRaw(act: (stream: ServerHttp2Stream) => void): Promise<number> {
  const server = createServer();
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    act(stream);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  stops.push(() => server.close());
  return (server.address() as AddressInfo).port;
}

describe("TestGrpcProber_Probe", () => {
  it("SERVING is a success", async () => {
    const port = await serveGrpc(answering(8, 1));
    expect(await probe({ grpc: { port } })).toEqual({
      result: "Success",
      message: "service healthy",
      wire: { protocol: "h2c", grpcStatus: "OK" },
    });
  });

  it.each([
    ["UNKNOWN", []],
    ["NOT_SERVING", [8, 2]],
    ["SERVICE_UNKNOWN", [8, 3]],
    ["7", [8, 7]],
  ])("%s is a failure", async (name, bytes) => {
    const port = await serveGrpc(answering(...bytes));
    const message = `service unhealthy (responded with "${name}")`;
    expect(await probe({ grpc: { port } })).toMatchObject({ result: "Failure", message });
  });

  it("the service is asked about by name, with the kubelet's User-Agent and a time limit", async () => {
    let asked: Buffer | undefined;
    let agent: unknown;
    const port = await serveGrpc((call, answer) => {
      asked = call.request;
      agent = call.metadata.get("user-agent")[0];
      answer(null, Buffer.from([8, 1]));
    });
    const service = "a".repeat(200);
    expect((await probe({ grpc: { port, service } })).result).toBe("Success");
    expect(asked?.toString()).toContain(service);
    expect(agent).toBe("kube-probe/1.36");
  });

  it("nobody listens", async () => {
    const port = await closedPort();
    expect((await probe({ grpc: { port } }, { timeoutMs: 100 })).message).toBe(
      `timeout: failed to connect service "127.0.0.1:${port}" within 100ms: context deadline exceeded`,
    );
  });

  it("a server that comes up within the time-out is found", async () => {
    const port = await closedPort();
    const running = probe({ grpc: { port } }, { timeoutMs: 5_000 });
    const server = new Server();
    server.addService(CHECK, { Check: answering(8, 1) as never });
    await new Promise<void>((resolve) => {
      setTimeout(
        () => server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), () => resolve()),
        50,
      );
    });
    stops.push(() => server.forceShutdown());
    expect((await running).result).toBe("Success");
  });

  it("no health service", async () => {
    const port = await serveGrpc(undefined);
    expect((await probe({ grpc: { port } })).message).toMatch(
      /^error: this server does not implement the grpc health protocol \(grpc\.health\.v1\.Health\): /,
    );
  });

  it("a service that is not known, with its message decoded", async () => {
    const port = await serveGrpc(refusing(status.NOT_FOUND, "unknown service ä%"));
    expect((await probe({ grpc: { port, service: "x" } })).message).toBe(
      "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service ä%",
    );
  });

  it("an answer that is slower than the time-out, by either side's clock", async () => {
    const silent = await serveGrpc(() => {});
    const message = "timeout: health rpc did not complete within 200ms";
    expect((await probe({ grpc: { port: silent } }, { timeoutMs: 200 })).message).toBe(message);
    const late = await serveGrpc(refusing(status.DEADLINE_EXCEEDED, "late"));
    expect((await probe({ grpc: { port: late } }, { timeoutMs: 200 })).message).toBe(message);
  });
});

describe("answers that no gRPC library gives", () => {
  const answer = (headers: Record<string, string | number>, body: Buffer | undefined, trailers: object) => {
    return serveRaw((stream) => {
      stream.respond(
        { ":status": 200, "content-type": "application/grpc", ...headers },
        { waitForTrailers: true },
      );
      stream.on("wantTrailers", () => stream.sendTrailers(trailers as never));
      stream.end(body);
    });
  };
  const textOf = async (port: number) => (await probe({ grpc: { port } }, { timeoutMs: 2_000 })).message;
  const RPC = "error: health rpc probe failed: rpc error: code =";
  const serving = encodeFrame(Buffer.from([8, 1]));

  it("trailers only", async () => {
    const port = await serveRaw((stream) => {
      stream.respond(
        { ":status": 200, "content-type": "application/grpc", "grpc-status": "5", "grpc-message": "no" },
        { endStream: true },
      );
    });
    expect(await textOf(port)).toBe(`${RPC} NotFound desc = no`);
  });

  it("no message", async () => {
    expect(await textOf(await answer({}, undefined, { "grpc-status": "0" }))).toMatch(
      /code = Internal desc = cardinality violation/,
    );
  });

  it("half a message, a compressed one, one that is none", async () => {
    const ok = { "grpc-status": "0" };
    expect(await textOf(await answer({}, serving.subarray(0, 6), ok))).toBe(
      `${RPC} Internal desc = unexpected EOF`,
    );
    expect(await textOf(await answer({}, Buffer.from([1, 0, 0, 0, 0]), ok))).toMatch(/compressed flag set/);
    expect(await textOf(await answer({}, encodeFrame(Buffer.from([0xff])), ok))).toMatch(
      /failed to unmarshal/,
    );
  });

  it("a message of more than 4 MiB is refused, announced or sent", async () => {
    const announced = Buffer.from([0, 0xff, 0xff, 0xff, 0xff]);
    expect(await textOf(await answer({}, announced, { "grpc-status": "0" }))).toBe(
      `${RPC} ResourceExhausted desc = grpc: received message larger than max (4294967295 vs. 4194304)`,
    );
    const sent = Buffer.alloc(5 * 1024 * 1024);
    expect(await textOf(await answer({}, sent, { "grpc-status": "0" }))).toMatch(/code = ResourceExhausted/);
  });

  it("a status that is no number, and one that nobody knows", async () => {
    expect(await textOf(await answer({}, serving, { "grpc-status": "x" }))).toMatch(/malformed grpc-status/);
    expect(await textOf(await answer({}, serving, { "grpc-status": "99" }))).toBe(`${RPC} Code(99) desc = `);
  });

  it("a web server", async () => {
    expect(await textOf(await answer({ "content-type": "text/html" }, Buffer.from("<p>"), {}))).toBe(
      `${RPC} Unknown desc = unexpected HTTP status code received from server: 200 (OK); transport: received unexpected content-type "text/html"`,
    );
    expect(
      await textOf(await answer({ ":status": 503, "content-type": "text/html" }, undefined, {})),
    ).toMatch(/code = Unavailable desc = unexpected HTTP status code received from server: 503/);
  });
});

describe("TestGrpcProber_Probe_TLS", () => {
  async function tlsServer(): Promise<number> {
    const { cert, key } = await issueCertificate({ commonName: "grpc" });
    const pair = { cert_chain: Buffer.from(cert), private_key: Buffer.from(key) };
    return serveGrpc(answering(8, 1), ServerCredentials.createSsl(null, [pair]));
  }
  const NOT_CONNECTED = /^timeout: failed to connect service "127\.0\.0\.1:\d+" within 300ms: /;

  it.each([
    ["TLSv1.2", "handshake failure", "TLS handshake failed"],
    ["TLSv1.3", "certificate required", "the server asks for a client certificate"],
  ] as const)("a server that asks for a certificate (%s)", async (version, alert, reason) => {
    const { cert, key } = await issueCertificate({ commonName: "grpc" });
    const server = createSecureServer({
      cert,
      key,
      ca: cert,
      requestCert: true,
      rejectUnauthorized: true,
      maxVersion: version,
    });
    server.on("error", () => {}).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const result = await probe({ grpc: { port, mode: "TLS" } }, { timeoutMs: 300 });
    server.close();
    expect(result.message).toMatch(NOT_CONNECTED);
    expect(result.wire.lastAttempt).toBe(`remote error: tls: ${alert}`);
    expect(failureReasonOf(result, false)).toBe(reason);
  });

  it("the cause of a mode whose gate is off", async () => {
    const gates = { H2CContainerProbe: false, GRPCContainerProbeTLS: false };
    const action = { port: await tlsServer(), mode: "TLS" };
    const result = await probe({ grpc: action }, { timeoutMs: 300, gates });
    expect(result.message).toMatch(NOT_CONNECTED);
    expect(failureReasonOf(result, false)).toBe("grpc.mode is ignored: its feature gate is off");
    const refused = await probe({ grpc: { port: await closedPort() } }, { timeoutMs: 300 });
    expect(failureReasonOf(refused, false)).toBe("connection refused");
  });

  it("TLS succeeds against a TLS server whose certificate nobody signed", async () => {
    const port = await tlsServer();
    expect(await probe({ grpc: { port, mode: "TLS" } })).toMatchObject({
      result: "Success",
      wire: { protocol: "h2", certificate: expect.stringContaining("CN=grpc") },
    });
  });

  it("plaintext against a TLS server and TLS against a plaintext server fail", async () => {
    const tls = await tlsServer();
    const plain = await serveGrpc(answering(8, 1));
    expect((await probe({ grpc: { port: tls } }, { timeoutMs: 300 })).message).toMatch(NOT_CONNECTED);
    expect((await probe({ grpc: { port: plain, mode: "TLS" } }, { timeoutMs: 300 })).message).toMatch(
      NOT_CONNECTED,
    );
  });

  it("with the gate off, mode TLS is plaintext", async () => {
    const port = await serveGrpc(answering(8, 1));
    const gates = { H2CContainerProbe: true, GRPCContainerProbeTLS: false };
    expect((await probe({ grpc: { port, mode: "TLS" } }, { gates })).result).toBe("Success");
    expect((await probe({ grpc: { port, mode: "Plaintext" } })).result).toBe("Success");
  });
});

describe("health messages", () => {
  it("an empty service is an empty message", () => {
    const messageOf = (service: string) =>
      new CheckRequest("http", "a:1", service, "kube-probe/1.36").message;
    expect(Buffer.from(messageOf("")).toString("hex")).toBe("0000000000");
    expect(Buffer.from(messageOf("ab")).toString("hex")).toBe("00000000040a026162");
  });

  it("fields that nobody knows are stepped over", async () => {
    const unknown = Buffer.from(`12016119${"00".repeat(8)}25${"00".repeat(4)}0801`, "hex");
    const port = await serveGrpc(answering(...unknown));
    expect((await probe({ grpc: { port } })).result).toBe("Success");
  });

  it.each(["08", "0bff", "12ff01", "1900"])("%s is no message", async (hex) => {
    const port = await serveGrpc(answering(...Buffer.from(hex, "hex")));
    expect((await probe({ grpc: { port } })).message).toContain("proto: cannot parse");
  });
});

function encodeFrame(message: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
