import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { PodNetwork } from "../../real/containerd/pod-network.ts";

const SERVICE_NAME = /^kubernetes\.default\.svc(?:\.cluster\.local)?$/;

/** What kube-proxy and a DNS server are for pods: `kubernetes.default.svc` leads to the API server. */
export async function serveKubernetesService(network: PodNetwork, url: string): Promise<() => Promise<void>> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  const relay = createServer((client) => {
    const server = connect(Number(port), hostname);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      socket.on("error", () => other.destroy());
      socket.on("close", () => sockets.delete(socket));
    }
  });
  relay.listen(443, network.serviceAddress);
  await once(relay, "listening");
  const names = createSocket("udp4", (query, { address, port: from }) => {
    names.send(answerOf(query, network.serviceAddress), from, address);
  });
  names.bind(53, network.gateway);
  await once(names, "listening");
  return async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise<unknown>((resolve) => relay.close(resolve));
    await new Promise<void>((resolve) => names.close(resolve));
  };
}

/** RFC 1035: the question again, with an A record, with none (another type), or with NXDOMAIN. */
function answerOf(query: Buffer, address: string): Buffer {
  const labels: string[] = [];
  let offset = 12;
  for (let length = query[offset] ?? 0; length > 0; length = query[offset] ?? 0) {
    labels.push(query.toString("latin1", offset + 1, offset + 1 + length));
    offset += 1 + length;
  }
  const isKnown = SERVICE_NAME.test(labels.join(".").toLowerCase());
  const answers = isKnown && query.readUInt16BE(offset + 1) === 1 ? 1 : 0;
  const head = Buffer.from(query.subarray(0, offset + 5));
  // A response with recursion available; 3 is NXDOMAIN. One question, and nothing but answers.
  head.writeUInt16BE(isKnown ? 0x8580 : 0x8583, 2);
  for (const [at, count] of [1, answers, 0, 0].entries()) head.writeUInt16BE(count, 4 + 2 * at);
  if (answers === 0) return head;
  // The name at 12, A, IN, 5 s, 4 bytes.
  const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, ...address.split(".").map(Number)];
  return Buffer.concat([head, Buffer.from(record)]);
}
