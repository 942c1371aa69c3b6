import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, inject, it } from "vitest";
import { BUSYBOX_IMAGE } from "../real/containerd/busybox-images.ts";
import { sluiceFile } from "../support/built-program.ts";
import { freePorts } from "../support/http/loopback.ts";
import { collect } from "../support/kubectl.ts";
import { describeReal } from "../support/real-parts.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

const page = readFileSync(new URL("../../docs/first-cluster.md", import.meta.url), "utf8");
const blocks = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text]) => text ?? "");

/** What this machine has otherwise than a reader's: ports, the image, nodes on loopback. */
async function forThisMachine(script: string): Promise<string> {
  const [port, adminPort] = await freePorts(2);
  const replaced: [string, string][] = [
    ["16443", String(port)],
    ["18081", String(adminPort)],
    ["--image=busybox", `--image=${BUSYBOX_IMAGE} --image-pull-policy=Never`],
    ["kubelet:\n", 'kubelet:\n  allowedAddresses: ["127.0.0.0/8"]\n'],
  ];
  return replaced.reduce((text, [from, to]) => {
    expect(text).toContain(from);
    return text.replaceAll(from, to);
  }, script);
}

describeReal("cluster", "docs/first-cluster.md", () => {
  it("leads to a kubectl exec through the gateway, and away again, as it is written", async () => {
    const cluster = inject("cluster") as ClusterAddresses;
    // Another file may have just deleted the page's namespace.
    const gone = ["wait", "--for=delete", "namespace/sluice", "--timeout=60s"];
    await promisify(execFile)(path.join(cluster.programs, "kubectl"), [
      "--kubeconfig",
      cluster.adminKubeconfig,
      ...gone,
    ]);
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-first-cluster-"));
    const programs = path.join(folder, "bin");
    mkdirSync(programs);
    symlinkSync(path.join(cluster.programs, "kubectl"), path.join(programs, "kubectl"));
    symlinkSync(sluiceFile(), path.join(programs, "sluice"));
    const script = path.join(folder, "page.sh");
    // Job control is a terminal's: it makes %1 of the page the gateway.
    writeFileSync(
      script,
      `set -emx\ntrap 'kill %1 2>/dev/null || true' EXIT\n${await forThisMachine(blocks.join("\n"))}`,
    );
    const child = spawn("bash", [script], {
      cwd: folder,
      env: {
        ...process.env,
        PATH: `${programs}:${path.dirname(process.execPath)}:${process.env.PATH}`,
        HOME: folder,
        KUBECONFIG: cluster.adminKubeconfig,
      },
    });
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
    try {
      const [code] = await once(child, "close");
      expect({ code, stderr: stderr().slice(-3_000) }).toMatchObject({ code: 0 });
      expect(stdout()).toContain("a valid GatewayConfiguration");
      // What `date` prints in the pod.
      expect(stdout()).toMatch(/^\w{3} \w{3} +\d+ \d\d:\d\d:\d\d UTC \d{4}$/m);
      expect(stdout()).toContain("[+]cluster ok");
      expect(stdout()).toMatch(
        /^sluice_streaming_sessions_ended_total\{subresource="exec",.*ended_by="node",cause="completed"\} 1$/m,
      );
    } finally {
      if (child.exitCode === null) process.kill(-(child.pid ?? 0), "SIGKILL");
      rmSync(folder, { recursive: true });
    }
  }, 180_000);
});
