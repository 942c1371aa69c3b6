import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { getAsset, isSea } from "node:sea";
import { fileURLToPath } from "node:url";

/**
 * The single binary (docs/single-binary.md) has no files beside it: scripts/build-binary.mjs embeds
 * them.
 */
export const isSingleBinary: boolean = isSea();

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

/** A text that scripts/build-binary.mjs embedded. Throws outside the single binary. */
export function embeddedText(name: string): string {
  return getAsset(name, "utf8");
}

/**
 * The program for a worker thread or child process: next to the file `url`, compiled alike, or in
 * the single binary.
 */
export function ownProgram(name: string, url: string): URL {
  if (!isSingleBinary) return new URL(`${name}${path.extname(fileURLToPath(url))}`, url);
  const code = embeddedText("loader.js").replace("PROGRAM", name);
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}
