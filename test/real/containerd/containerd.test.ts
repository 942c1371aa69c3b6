import { existsSync, readFileSync } from "node:fs";
import { get } from "node:http";
import path from "node:path";
import { beforeEach, expect, it } from "vitest";
import { CriError, GRPC_STATUS } from "../../support/cri.ts";
import { eventually } from "../../support/eventually.ts";
import { describeReal } from "../../support/real-parts.ts";
import { BUSYBOX_IMAGE } from "./busybox-images.ts";
import { describeEachContainerd } from "./each-containerd.ts";
import { type RunningContainerd, startContainerd } from "./start-containerd.ts";

describeReal("containerd", "the containerd that tests start", () => {
  describeEachContainerd((running, binaries) => {
    let containerd: RunningContainerd;
    beforeEach(() => {
      containerd = running() as RunningContainerd;
    });

    it("runs a pod and mints a streaming URL that is good once", async () => {
      const containerId = await runSleeper(containerd);
      const url = await containerd.cri.execUrl(containerId, ["true"], { stdout: true });
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/exec\/\S{8}$/);
      expect(await statusOf(url)).toBe(400);
      expect(await statusOf(url)).toBe(404);
    });

    it("refuses in gRPC's terms", async () => {
      const refusal = await containerd.cri
        .execUrl("nobody", ["true"], { stdout: true })
        .catch((error) => error);
      expect(refusal).toBeInstanceOf(CriError);
      expect(refusal.grpcStatus).toBe(GRPC_STATUS.NOT_FOUND);
    });

    it("leaves nothing behind, even when the daemon was killed with SIGKILL", async () => {
      const killed = await startContainerd(binaries);
      await runSleeper(killed);
      expect(tracesOf(killed.folder)).not.toEqual([]);
      process.kill(killed.processId, "SIGKILL");
      await eventually("the daemon is gone", () => !existsSync(`/proc/${killed.processId}/exe`));
      await killed.stop();
      expect(tracesOf(killed.folder)).toEqual([]);
      expect(existsSync(killed.folder)).toBe(false);
    });
  });
});

async function runSleeper(containerd: RunningContainerd): Promise<string> {
  const { cgroupParent, podLogs: logDirectory } = containerd;
  const pod = await containerd.cri.runPod({ name: "sleeper", cgroupParent, logDirectory });
  return containerd.cri.runContainer(pod, { name: "main", image: BUSYBOX_IMAGE, command: ["sleep", "1000"] });
}

function statusOf(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on("error", reject);
  });
}

/** Mounts and cgroups that carry the folder's name. */
function tracesOf(folder: string): string[] {
  const mounts = readFileSync("/proc/self/mounts", "utf8").split("\n");
  const cgroups = [
    `/sys/fs/cgroup/memory/${path.basename(folder)}`,
    `/sys/fs/cgroup/${path.basename(folder)}`,
  ];
  return [
    ...mounts.filter((line) => line.includes(folder)),
    ...cgroups.filter((cgroup) => existsSync(cgroup)),
  ];
}
