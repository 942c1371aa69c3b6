import { existsSync, readFileSync } from "node:fs";
import { embeddedText, isSingleBinary } from "./own-files.ts";

/** The used part of package.json, for sluice and for @sluice/client of the same version. */
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

/**
 * `User-Agent` of Sluice's own requests. Probes send the kubelet's, and forwarded requests keep
 * their client's.
 */
export const USER_AGENT = `sluice/${SLUICE_VERSION}`;

/**
 * The Kubernetes minor release that the gateway imitates; probes send it in `User-Agent:
 * kube-probe/MAJOR.MINOR`.
 */
export const CLAIMED_KUBERNETES_MINOR = "1.36";

/** The answer of `/version`. kubectl warns if its own minor release differs by more than one. */
export const CLAIMED_KUBERNETES_VERSION = `v${CLAIMED_KUBERNETES_MINOR}.0+sluice-${SLUICE_VERSION}`;
