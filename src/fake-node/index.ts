export { createDemoPodServers, type DemoPodServers } from "./demo-pod-servers.ts";
export { defaultStandinLimits, type StandinLimits } from "./limits.ts";
export { type RunStandinNodeOptions, runStandinNode } from "./run-standin-node.ts";
export { createSelfSignedCertificate, type SelfSignedCertificate } from "./self-signed.ts";
export { createStandinNode, type StandinNode, type StandinNodeOptions } from "./standin-node.ts";
export type { StandinContainer, StandinPod } from "./standin-pod.ts";
