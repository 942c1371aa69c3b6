import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { kubeconfigTarget, Target } from "../../packages/client/src/index.ts";
import { loadKubeconfig } from "../../packages/client/src/kubernetes/kubeconfig.ts";
import {
  apiServerEndpoint,
  type Endpoint,
  kubeletEndpoint,
} from "../../packages/lab/src/conformance/endpoint.ts";
import { ECHO_COMMAND, ECHO_POD, serveEcho } from "../support/conformance/echo-pod.ts";
import { CriClient } from "../support/cri.ts";
import { type DoorName, openDoors } from "./doors.ts";
import { pod } from "./kubernetes/objects.ts";
import { applyObjects, type ClusterAddresses } from "./kubernetes/start-cluster.ts";

/** The echo pod behind each server of a cluster, for conformance cases. */
export interface ClusterEndpoints {
  apiServer(door: DoorName): Promise<Endpoint>;
  /** A kubelet, or Sluice in its place, with the API server's credentials. */
  kubelet(address: string): Endpoint;
  stop(): Promise<void>;
}

/** Starts the echo pod, and waits until it is ready. */
export async function startEchoPod(cluster: ClusterAddresses): Promise<void> {
  const main = { name: ECHO_POD.container, command: ECHO_COMMAND, stdin: true };
  const kubectl = path.join(cluster.programs, "kubectl");
  await applyObjects(kubectl, cluster.adminKubeconfig, [pod(ECHO_POD.pod, [main])]);
  const wait = ["wait", "--for=condition=Ready", "--timeout=60s", `pod/${ECHO_POD.pod}`];
  await promisify(execFile)(kubectl, ["--kubeconfig", cluster.adminKubeconfig, ...wait]);
}

/** Opens the doors and runs the echo pod. */
export async function openEndpoints(
  cluster: ClusterAddresses,
  names: readonly DoorName[],
): Promise<ClusterEndpoints> {
  const pem = (name: string): string => readFileSync(path.join(cluster.credentials, name), "utf8");
  const { doors, stop: closeDoors } = await openDoors(cluster, names);
  let stopEcho = async (): Promise<void> => {};
  const stop = async (): Promise<void> => {
    await stopEcho();
    await closeDoors();
  };
  try {
    await startEchoPod(cluster);
    const cri = new CriClient(cluster.runtimeSocket);
    stopEcho = await serveEcho(cri).finally(() => cri.close());
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    apiServer: async (name) => {
      const door = doors.find((one) => one.name === name);
      if (door === undefined) throw new Error(`${name} is not open`);
      const { kubeconfig } = await door.access("alice");
      return apiServerEndpoint(kubeconfigTarget(await loadKubeconfig(kubeconfig, undefined)), ECHO_POD);
    },
    kubelet: (address) => {
      const url = `https://${address}:${cluster.kubeletPort}`;
      const tls = {
        ca: pem("ca.crt"),
        certificate: pem("apiserver-kubelet-client.crt"),
        key: pem("apiserver-kubelet-client.key"),
      };
      return kubeletEndpoint(new Target({ url, tls, proxy: "none" }), ECHO_POD);
    },
    stop,
  };
}
