import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { ServiceEndpoints } from "./service-endpoints.ts";

export interface ServiceBalancer {
  readonly port: number;
  /** New connections that found no endpoint, or whose endpoint did not take them. */
  readonly failures: readonly string[];
  /** Resets every connection, as a load balancer that is replaced does. */
  cutAll(): void;
  close(): Promise<void>;
}

/**
 * A layer 4 load balancer, on loopback unless the Service's own address is given: each connection goes to the next
 * endpoint of a Service, and stays there.
 */
export async function balanceService(
  endpoints: ServiceEndpoints,
  [namespace, service, targetPort]: readonly [string, string, number],
  own: { readonly host: string; readonly port: number } = { host: "127.0.0.1", port: 0 },
): Promise<ServiceBalancer> {
  const sockets = new Set<Socket>();
  const failures: string[] = [];
  let turn = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const addresses = endpoints.addresses(namespace, service);
    const host = addresses[turn++ % Math.max(1, addresses.length)];
    if (host === undefined) {
      failures.push("no endpoint");
      client.resetAndDestroy();
      return;
    }
    const target = connect({ host, port: targetPort, allowHalfOpen: true, noDelay: true });
    let isConnected = false;
    target.once("connect", () => {
      isConnected = true;
    });
    target.once("error", (error) => {
      if (!isConnected) failures.push(error.message);
    });
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.once("close", () => {
        sockets.delete(from);
        to.destroySoon();
      });
      from.pipe(to);
    }
  });
  server.listen(own);
  await once(server, "listening");
  const cutAll = (): void => {
    for (const socket of [...sockets]) socket.resetAndDestroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    failures,
    cutAll,
    close: async () => {
      const closed = once(server.close(), "close");
      cutAll();
      await closed;
    },
  };
}
