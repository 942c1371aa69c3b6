import type { TestProject } from "vitest/node";
import { isRequired, stateOf } from "../support/real-parts.ts";
import { type ClusterAddresses, startCluster } from "./kubernetes/start-cluster.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Absent where a part of it is missing: the tests are skipped then, or fail where SLUICE_REQUIRE names it. */
    cluster: ClusterAddresses | undefined;
  }
}

/** What SLUICE_API_SERVER can be. */
const API_SERVERS: Readonly<Record<string, { apiServer: string }>> = {
  oldest: { apiServer: "kube-apiserver-oldest" },
};

/** For vitest, before the cluster's tests: starts the one cluster that all of them share. */
export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const { missing } = stateOf("cluster");
  if (missing !== undefined) {
    console.log(`cluster: ${isRequired("cluster") ? "REQUIRED, but" : "skipped,"} ${missing}`);
    project.provide("cluster", undefined);
    return undefined;
  }
  const startMs = performance.now();
  const {
    stop,
    daemons: _,
    restartContainerd: __,
    ...addresses
  } = await startCluster(API_SERVERS[process.env.SLUICE_API_SERVER ?? ""]);
  const seconds = (): string => ((performance.now() - startMs) / 1_000).toFixed(1);
  console.log(`cluster: Kubernetes ${addresses.version} is ready after ${seconds()} s`);
  project.provide("cluster", addresses);
  return async () => {
    await stop();
    console.log(`cluster: stopped after ${seconds()} s`);
  };
}
