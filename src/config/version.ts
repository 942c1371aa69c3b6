import { createRequire } from "node:module";

/** This release, from package.json, found by its own name: source and dist lie at different depths below it. */
export const SLUICE_VERSION: string = (
  createRequire(import.meta.url)("sluice/package.json") as { readonly version: string }
).version;

/** `User-Agent` of the requests that Sluice makes for itself. Probes have the kubelet's, and forwarded requests their client's. */
export const USER_AGENT = `sluice/${SLUICE_VERSION}`;

/** The minor release of Kubernetes whose behaviour is claimed: probes have it in `User-Agent: kube-probe/MAJOR.MINOR`. */
export const CLAIMED_KUBERNETES_MINOR = "1.36";

/** What `/version` answers. kubectl warns when it is more than one minor release away. */
export const CLAIMED_KUBERNETES_VERSION = `v${CLAIMED_KUBERNETES_MINOR}.0+sluice-${SLUICE_VERSION}`;
