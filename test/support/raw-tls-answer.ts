import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { createServer } from "node:tls";
import { afterHead } from "./http/loopback.ts";
import type { TestCertificate } from "./test-certificates.ts";

export interface RawTlsServer {
  readonly port: number;
  close(): Promise<void>;
}

/** A TLS server on loopback that answers each request head with the same bytes. */
export async function startRawTls(certificate: TestCertificate, answer: string): Promise<RawTlsServer> {
  const sockets = new Set<Socket>();
  const server = createServer(certificate, (socket) => {
    socket.on("error", () => {});
    afterHead(socket, () => socket.write(answer, "latin1"));
  });
  server.on("connection", (socket: Socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
