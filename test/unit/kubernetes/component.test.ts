import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { onFault } from "../../../packages/client/src/observability/faults.ts";
import { parseConfiguration } from "../../../src/config/configuration.ts";
import { buildCluster } from "../../../src/kubernetes/component.ts";
import { createLogger } from "../../../src/observability/logger.ts";
import { Metrics } from "../../../src/observability/metrics.ts";

it("an exception in a listener of the store is a fault of its own place, and names the object alone", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-cluster-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "team" } };
  writeFileSync(
    path.join(folder, "cluster.json"),
    JSON.stringify({ apiVersion: "v1", kind: "List", items: [] }),
  );
  const configuration = parseConfiguration(
    JSON.stringify({
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      cluster: { manifests: ["cluster.json"] },
    }),
    path.join(folder, "gateway.json"),
  );
  const faults: unknown[] = [];
  onTestFinished(onFault((where, error) => void faults.push([where, (error as Error).message])));
  const logger = createLogger({ level: "error" });
  const cluster = await buildCluster(configuration, new Metrics({ withProcessMetrics: false }), logger);
  onTestFinished(() => cluster.stop());
  cluster.store.subscribe(() => {
    throw new Error("injected");
  });
  cluster.store.replaceAll([namespace as never], new Date());
  expect(faults).toContainEqual(["cluster", "the change of Namespace team could not be followed"]);
});
