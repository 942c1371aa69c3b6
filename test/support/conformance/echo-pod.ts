import { spawn } from "node:child_process";
import { once } from "node:events";
import { BUSYBOX_IMAGE } from "../../real/containerd/busybox-images.ts";
import type { RunningContainerd } from "../../real/containerd/start-containerd.ts";
import type { CriClient } from "../cri.ts";

export const ECHO_POD = { namespace: "default", pod: "echo", container: "main" };
export const ECHO_PORT = 7;

/** Repeats its input. */
export const ECHO_COMMAND = ["cat"];

const SERVER = `require("node:net").createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("error", () => {});
  socket.pipe(socket);
}).listen(${ECHO_PORT}, () => console.log("listening"));`;

/** Starts the pod with containerd alone. */
export async function runEchoPod({ cri, cgroupParent, podLogs }: RunningContainerd): Promise<void> {
  const sandbox = await cri.runPod({ name: ECHO_POD.pod, cgroupParent, logDirectory: podLogs });
  const { container: name } = ECHO_POD;
  await cri.runContainer(sandbox, { name, image: BUSYBOX_IMAGE, command: ECHO_COMMAND, stdin: true });
}

/**
 * Echoes what each connection to ECHO_PORT of the running pod sends. busybox's nc is not used,
 * because it resets some of many connections.
 */
export async function serveEcho(cri: CriClient): Promise<() => Promise<void>> {
  const network = await cri.networkOf(ECHO_POD);
  const server = spawn("nsenter", [`--net=${network}`, process.execPath, "-e", SERVER], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(server, "exit");
  const stop = async (): Promise<void> => {
    server.kill();
    await exited;
  };
  const isReady = await Promise.race([
    once(server.stdout, "data").then(() => true),
    exited.then(() => false),
  ]);
  if (!isReady) throw new Error("the echo server did not start in the pod's network");
  return stop;
}
