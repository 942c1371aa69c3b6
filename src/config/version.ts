import { existsSync, readFileSync } from "node:fs";
import { embeddedText, isSingleBinary } from "./own-files.ts";

/** What is used of package.json: of sluice, or of @sluice/client, which has the same version. */
interface Manifest {
  readonly version: string;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
}

export const MANIFEST: Manifest = JSON.parse(
  isSingleBinary ? embeddedText("package.json") : readFileSync(manifestFile(), "utf8"),
);

function manifestFile(): URL {
  const fromSource = new URL("../../package.json", import.meta.url);
  return existsSync(fromSource) ? fromSource : new URL("../../../package.json", import.meta.url);
}

/** This release. */
export const SLUICE_VERSION: string = MANIFEST.version;

/** `User-Agent` of the requests that Sluice makes for itself. Probes have the kubelet's, and forwarded requests their client's. */
export const USER_AGENT = `sluice/${SLUICE_VERSION}`;

/** The minor release of Kubernetes whose behaviour is claimed: probes have it in `User-Agent: kube-probe/MAJOR.MINOR`. */
export const CLAIMED_KUBERNETES_MINOR = "1.36";

/** What `/version` answers. kubectl warns when it is more than one minor release away. */
export const CLAIMED_KUBERNETES_VERSION = `v${CLAIMED_KUBERNETES_MINOR}.0+sluice-${SLUICE_VERSION}`;
