import { createDemoPodServers, type DemoPodServers } from "./demo-pod-servers.ts";
import { createFakeNode, type FakeNode, type FakeNodeOptions } from "./fake-node.ts";
import type { FakePod } from "./fake-pod.ts";

export interface RunFakeNodeOptions extends Omit<FakeNodeOptions, "pods"> {
  /** Each pod gets an HTTP server on port 80 and TCP echo on port 7. */
  readonly pods: readonly Omit<FakePod, "ports">[];
}

/** Starts a node and the servers in its pods, for a process of its own. `close` ends both. */
export async function runFakeNode(options: RunFakeNodeOptions): Promise<FakeNode> {
  const servers: DemoPodServers[] = [];
  const closeServers = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()));
  };
  try {
    const pods: FakePod[] = [];
    for (const pod of options.pods) {
      const server = await createDemoPodServers(pod.name);
      servers.push(server);
      pods.push({ ...pod, ports: server.ports });
    }
    const node = await createFakeNode({ ...options, pods });
    return {
      name: node.name,
      address: node.address,
      port: node.port,
      declaredFeatures: node.declaredFeatures,
      get sessionCount() {
        return node.sessionCount;
      },
      async close() {
        await node.close();
        await closeServers();
      },
    };
  } catch (error) {
    await closeServers();
    throw error;
  }
}
