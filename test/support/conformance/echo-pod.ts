import { BUSYBOX_IMAGE } from "../../real/containerd/busybox-images.ts";
import type { RunningContainerd } from "../../real/containerd/start-containerd.ts";

export const ECHO_POD = { namespace: "default", pod: "echo", container: "main" };

/** Repeats its input, and on port 7 what each connection sends until its client ends. busybox has no other server that runs a program. */
export const ECHO_COMMAND = ["sh", "-c", "nc -ll -p 7 -e cat & exec cat"];

/** The pod, run by containerd alone. */
export async function runEchoPod({ cri, cgroupParent, podLogs }: RunningContainerd): Promise<void> {
  const sandbox = await cri.runPod({ name: ECHO_POD.pod, cgroupParent, logDirectory: podLogs });
  const { container: name } = ECHO_POD;
  await cri.runContainer(sandbox, { name, image: BUSYBOX_IMAGE, command: ECHO_COMMAND, stdin: true });
}
