import type { AdapterPod } from "../../support/cri-node-adapter.ts";
import type { CheckedPod } from "../../support/kubectl-checks.ts";
import { BUSYBOX_IMAGE } from "./busybox-images.ts";
import type { RunningContainerd } from "./start-containerd.ts";

/** The pod that kubectl's checks speak to, run by containerd. */
export const webPod: CheckedPod = { name: "web", container: "main", folder: "/tmp", httpPort: 80 };

/** Serves HTTP inside the pod's own network, and answers its stdin for those who attach. */
const mainProcess = 'httpd -p 127.0.0.1:80 -h /www; while read -r line; do echo "main saw: $line"; done';

export async function runWebPod({ cri, cgroupParent, podLogs }: RunningContainerd): Promise<AdapterPod> {
  const pod = await cri.runPod({ name: webPod.name, cgroupParent, logDirectory: podLogs });
  const command = ["sh", "-c", mainProcess];
  const id = await cri.runContainer(pod, {
    name: webPod.container,
    image: BUSYBOX_IMAGE,
    command,
    stdin: true,
  });
  return {
    namespace: "default",
    name: webPod.name,
    sandboxId: pod.id,
    containers: { [webPod.container]: id },
  };
}
