import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, inject, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { describeReal } from "../support/real-parts.ts";
import { serveGateway } from "../support/served-gateway.ts";
import { gatewayConfiguration } from "./door-configurations.ts";
import { certificateOf, kubeconfigText } from "./kubernetes/credentials.ts";
import type { ClusterAddresses } from "./kubernetes/start-cluster.ts";

describeReal("cluster", "a gateway whose account has too few permissions", () => {
  it("names them in its log and on /readyz", async () => {
    const cluster = inject("cluster") as ClusterAddresses;
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-permissions-"));
    const write = (name: string, text: string): string => {
      const file = path.join(folder, name);
      writeFileSync(file, text, { mode: 0o600 });
      return file;
    };
    // The scheduler reads what every gateway reads, and may not impersonate.
    const credentials = certificateOf("scheduler", cluster.credentials);
    const kubeconfig = write("kubeconfig", kubeconfigText(cluster.url, cluster.credentials, credentials));
    const configuration = {
      ...gatewayConfiguration(cluster, "gateway"),
      cluster: { kubeconfig, forwardAs: "impersonate", admission: "none" },
      authorization: { mode: ["AlwaysAllow"] },
    };
    const gateway = await serveGateway(write("gateway.json", JSON.stringify(configuration)));
    try {
      await eventually("it is logged", () => gateway.log().includes("lacks permissions"));
      const line = gateway
        .log()
        .split("\n")
        .find((candidate) => candidate.includes("lacks permissions"));
      const { missing } = JSON.parse(line ?? "{}");
      expect(missing).toContain("impersonate users (cluster.forwardAs: impersonate)");
      expect(missing).toContain(
        "impersonate userextras/authentication.kubernetes.io/credential-id.authentication.k8s.io (cluster.forwardAs: impersonate)",
      );
      const url = new URL("/readyz?verbose", gateway.adminUrl);
      const page = async (): Promise<string> => (await fetch(url)).text();
      await eventually("it is listed", async () =>
        /^\[\+\]cluster ok: .*lacks permissions: /m.test(await page()),
      );
    } finally {
      gateway.child.kill("SIGTERM");
      await gateway.exited;
      rmSync(folder, { recursive: true });
    }
  });
});
