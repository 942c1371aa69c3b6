import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { ECHO_COMMAND, ECHO_POD, serveEcho } from "../support/conformance/echo-pod.ts";
import { CriClient } from "../support/cri.ts";
import { OTHER_CLIENTS, titleOf } from "../support/other-clients.ts";
import { describeFull } from "../support/real-parts.ts";
import { type Doors, openDoors } from "./doors.ts";
import { pod } from "./kubernetes/objects.ts";
import { applyObjects, type ClusterAddresses } from "./kubernetes/start-cluster.ts";

/** With a token: fabric8 reads the keys of certificates like alice's only with BouncyCastle. */
const USER = "dev";

describeFull(["cluster"], "other projects' clients in a cluster", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  let opened: Doors;
  let stopEcho: (() => Promise<void>) | undefined;

  beforeAll(async () => {
    opened = await openDoors(cluster, ["straight", "gateway"]);
    const main = { name: ECHO_POD.container, command: ECHO_COMMAND, stdin: true };
    const kubectl = path.join(cluster.programs, "kubectl");
    await applyObjects(kubectl, cluster.adminKubeconfig, [pod(ECHO_POD.pod, [main])]);
    const wait = ["wait", "--for=condition=Ready", "--timeout=60s", `pod/${ECHO_POD.pod}`];
    await promisify(execFile)(kubectl, ["--kubeconfig", cluster.adminKubeconfig, ...wait]);
    const cri = new CriClient(cluster.runtimeSocket);
    stopEcho = await serveEcho(cri).finally(() => cri.close());
  });
  afterAll(async () => {
    await stopEcho?.();
    await opened?.stop();
  });

  for (const client of OTHER_CLIENTS) {
    it.skipIf(client.version === undefined)(
      `${titleOf(client)} has the same straight and through the gateway`,
      async () => {
        const reports = await Promise.all(
          opened.doors.map(async ({ access }) => client.run((await access(USER)).kubeconfig, [ECHO_POD.pod])),
        );
        expect(reports).toEqual([[client.checks], [client.checks]]);
      },
      250_000,
    );
  }
});
