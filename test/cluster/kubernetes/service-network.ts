import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import type { PodNetwork } from "../../real/containerd/pod-network.ts";
import { ServiceEndpoints } from "./service-endpoints.ts";

const SERVICE_NAME = /^([a-z\d-]+)\.([a-z\d-]+)\.svc(?:\.cluster\.local)?$/;

/** What kube-proxy and a DNS server are for pods: `kubernetes.default.svc` leads to the API server, other Services to their endpoints. */
export async function serveKubernetesService(
  network: PodNetwork,
  url: string,
  kubeconfig: string,
): Promise<() => Promise<void>> {
  const endpoints = await ServiceEndpoints.follow(kubeconfig);
  const addressesOf = (service: string, namespace: string): readonly string[] =>
    `${namespace}/${service}` === "default/kubernetes"
      ? [network.serviceAddress]
      : endpoints.addresses(namespace, service);
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
    names.send(answerOf(query, addressesOf), from, address);
  });
  names.bind(53, network.gateway);
  await once(names, "listening");
  return async () => {
    await endpoints.close();
    for (const socket of sockets) socket.destroy();
    await new Promise<unknown>((resolve) => relay.close(resolve));
    await new Promise<void>((resolve) => names.close(resolve));
  };
}

/** RFC 1035: the question again, with A records, with none (another type), or with NXDOMAIN. */
function answerOf(
  query: Buffer,
  addressesOf: (service: string, namespace: string) => readonly string[],
): Buffer {
  const labels: string[] = [];
  let offset = 12;
  for (let length = query[offset] ?? 0; length > 0; length = query[offset] ?? 0) {
    labels.push(query.toString("latin1", offset + 1, offset + 1 + length));
    offset += 1 + length;
  }
  const [, service = "", namespace = ""] = SERVICE_NAME.exec(labels.join(".").toLowerCase()) ?? [];
  const addresses = addressesOf(service, namespace);
  const isKnown = addresses.length > 0;
  const answers = query.readUInt16BE(offset + 1) === 1 ? addresses : [];
  const head = Buffer.from(query.subarray(0, offset + 5));
  // A response with recursion available; 3 is NXDOMAIN. One question, and nothing but answers.
  head.writeUInt16BE(isKnown ? 0x8580 : 0x8583, 2);
  for (const [at, count] of [1, answers.length, 0, 0].entries()) head.writeUInt16BE(count, 4 + 2 * at);
  // The name at 12, A, IN, 5 s, 4 bytes.
  const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4];
  return Buffer.concat([
    head,
    ...answers.map((at) => Buffer.from([...record, ...at.split(".").map(Number)])),
  ]);
}
