// packages/lab/fake-node: a node that answers as kubelet and runtime do, with real processes

export {
  createSelfSignedCertificate,
  type SelfSignedCertificate,
} from "@sluice/client/internal/net/self-signed";
export { createFakeNode, type FakeNode, type FakeNodeOptions } from "./fake-node.ts";
export type { FakeContainer, FakePod } from "./fake-pod.ts";
export { defaultFakeNodeLimits, type FakeNodeLimits } from "./limits.ts";
export {
  createDemoPodServers,
  type DemoPodServers,
  type RunFakeNodeOptions,
  runFakeNode,
} from "./run-fake-node.ts";
