import { runFakeNode } from "../../src/fake-node/index.ts";
import type { GatewayFilesOptions } from "./gateway-files.ts";
import { startTestGateway, type TestGateway } from "./test-gateway.ts";

export interface ShellGatewayOptions {
  /** Lines of the token file: `token,user,uid,"group1,group2"`. */
  users: readonly string[];
  /** RBAC objects. */
  manifests: readonly object[];
  /** More sections of the configuration. */
  configuration?: object;
}

/** A gateway before one fake node `node` with the pod `default/web`, container `main`, HTTP on port 80: a shell for whoever may. */
export async function startShellGateway(options: ShellGatewayOptions): Promise<TestGateway> {
  const command = ["/bin/sh", "-c", "exec cat"];
  const node = await runFakeNode({
    name: "node",
    declaresWebSockets: false,
    pods: [{ namespace: "default", name: "web", uid: "web-uid", containers: [{ name: "main", command }] }],
  });
  const files: GatewayFilesOptions = {
    nodes: [{ name: "node", port: node.port }],
    pods: [{ name: "web", nodeName: "node", container: "main" }],
    kubeletAuthority: "",
    users: options.users,
    manifests: options.manifests,
    configuration: {
      authorization: { mode: ["RBAC"] },
      kubelet: { scheme: "http", allowedAddresses: ["127.0.0.0/8"] },
      ...options.configuration,
    },
  };
  try {
    const gateway = await startTestGateway(files);
    return {
      ...gateway,
      stop: async () => {
        await gateway.stop();
        await node.close();
      },
    };
  } catch (error) {
    await node.close();
    throw error;
  }
}
