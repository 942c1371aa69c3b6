import { Server, ServerCredentials, type ServiceDefinition } from "@grpc/grpc-js";
import type { TestCertificate } from "./test-certificates.ts";

const raw = (bytes: Buffer): Buffer => bytes;

const HEALTH: ServiceDefinition = {
  Check: {
    path: "/grpc.health.v1.Health/Check",
    requestStream: false,
    responseStream: false,
    requestSerialize: raw,
    requestDeserialize: raw,
    responseSerialize: raw,
    responseDeserialize: raw,
  },
};

const SERVING = Buffer.from([8, 1]);
const NOT_SERVING = Buffer.from([8, 2]);

export interface GrpcHealthServer {
  readonly port: number;
  setServing(isServing: boolean): void;
  stop(): void;
}

/**
 * grpc-js with a health service that is SERVING until it is set otherwise; plaintext, or TLS if
 * there is a certificate.
 */
export async function startGrpcHealthServer(certificate?: TestCertificate): Promise<GrpcHealthServer> {
  const server = new Server();
  let status = SERVING;
  server.addService(HEALTH, {
    Check: ((_: unknown, answer: (error: null, bytes: Buffer) => void) => answer(null, status)) as never,
  });
  const pair = certificate && {
    cert_chain: Buffer.from(certificate.cert),
    private_key: Buffer.from(certificate.key),
  };
  const credentials = pair ? ServerCredentials.createSsl(null, [pair]) : ServerCredentials.createInsecure();
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", credentials, (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  return {
    port,
    setServing: (isServing) => {
      status = isServing ? SERVING : NOT_SERVING;
    },
    stop: () => server.forceShutdown(),
  };
}
