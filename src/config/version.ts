import { existsSync, readFileSync } from "node:fs";

const fromSource = new URL("../../package.json", import.meta.url);
/** In @sluice/client, too, which has the same version. */
const fromDist = new URL("../../../package.json", import.meta.url);

/** This release, from package.json. */
export const SLUICE_VERSION: string = JSON.parse(
  readFileSync(existsSync(fromSource) ? fromSource : fromDist, "utf8"),
).version;

/** `User-Agent` of the requests that Sluice makes for itself. Probes have the kubelet's, and forwarded requests their client's. */
export const USER_AGENT = `sluice/${SLUICE_VERSION}`;

/** The minor release of Kubernetes whose behaviour is claimed: probes have it in `User-Agent: kube-probe/MAJOR.MINOR`. */
export const CLAIMED_KUBERNETES_MINOR = "1.36";

/** What `/version` answers. kubectl warns when it is more than one minor release away. */
export const CLAIMED_KUBERNETES_VERSION = `v${CLAIMED_KUBERNETES_MINOR}.0+sluice-${SLUICE_VERSION}`;
