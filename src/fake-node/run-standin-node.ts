import { createDemoPodServers, type DemoPodServers } from "./demo-pod-servers.ts";
import { createStandinNode, type StandinNode, type StandinNodeOptions } from "./standin-node.ts";
import type { StandinPod } from "./standin-pod.ts";

export interface RunStandinNodeOptions extends Omit<StandinNodeOptions, "pods"> {
  /** Each gets an HTTP server on its port 80 and TCP echo on port 7. */
  readonly pods: readonly Omit<StandinPod, "ports">[];
}

/** A node together with what listens in its pods: all that a process of its own needs. `close` ends both. */
export async function runStandinNode(options: RunStandinNodeOptions): Promise<StandinNode> {
  const servers: DemoPodServers[] = [];
  const closeServers = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.close()));
  };
  try {
    const pods: StandinPod[] = [];
    for (const pod of options.pods) {
      const server = await createDemoPodServers(pod.name);
      servers.push(server);
      pods.push({ ...pod, ports: server.ports });
    }
    const node = await createStandinNode({ ...options, pods });
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
