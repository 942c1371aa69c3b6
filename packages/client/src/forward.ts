import { type Cluster, type ContainerName, referenceIn } from "./cluster.ts";
import { portForwardPath } from "./pod-paths.ts";
import type { PortForwardConnection } from "./port-forward-connection.ts";
import { FallbackDialer, type PortForwardDialer, SpdyDialer, TunnelDialer } from "./port-forward-dialers.ts";
import {
  type ListeningPort,
  PortForwarder,
  type PortForwarderOptions,
  type PortMapping,
} from "./port-forwarder.ts";

/** Listening local ports. */
export interface Forward {
  readonly ports: readonly ListeningPort[];
  /** Ends every connection, and the session with the pod. */
  close(): Promise<void>;
}

/**
 * Listens on local ports (`local` 0: any free one) and forwards connections to a pod's. A session
 * that was lost is dialled again for the next connection. Throws ConnectError if the pod cannot be
 * reached, and Error in client-go's words if a port is in use.
 */
export async function forward(
  cluster: Cluster,
  pod: Omit<ContainerName, "container">,
  ports: readonly PortMapping[],
  options: Omit<PortForwarderOptions, "ports" | "openStream"> = {},
): Promise<Forward> {
  const path = portForwardPath(referenceIn(cluster, pod));
  const { target } = cluster;
  const session = new PodSession(
    new FallbackDialer(new TunnelDialer(target, path), new SpdyDialer(target, path)),
  );
  const forwarder = new PortForwarder({
    ...options,
    ports,
    openStream: async (port) => (await session.connection()).openStream(port),
  });
  try {
    await session.connection();
    const listening = await forwarder.start();
    return {
      ports: listening,
      close: async () => {
        session.close();
        await forwarder.close();
      },
    };
  } catch (error) {
    session.close();
    throw error;
  }
}

/** One session at a time, dialled once for all that wait for it. */
class PodSession {
  readonly #dialer: PortForwardDialer;
  readonly #closed = new AbortController();
  #dialled: Promise<PortForwardConnection> | undefined;

  constructor(dialer: PortForwardDialer) {
    this.#dialer = dialer;
  }

  connection(): Promise<PortForwardConnection> {
    this.#dialled ??= this.#dial();
    return this.#dialled;
  }

  close(): void {
    this.#closed.abort();
    this.#dialled?.then(
      (connection) => connection.close(),
      () => {},
    );
  }

  async #dial(): Promise<PortForwardConnection> {
    const forget = (): void => {
      this.#dialled = undefined;
    };
    try {
      const connection = await this.#dialer.dial(this.#closed.signal);
      void connection.ended.then(forget);
      return connection;
    } catch (error) {
      forget();
      throw error;
    }
  }
}
