import { spawnSync } from "node:child_process";
import { accessSync, constants, readdirSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { goPeerFolder } from "./go-peers.ts";

export interface Binary {
  /** The version that the program prints, without a leading `v`: `1.27.16`. */
  version: string;
  path: string;
}

export interface Kubectl extends Binary {
  /** The `27` of `1.27.16`. */
  minor: number;
}

export interface Containerd extends Binary {
  /**
   * The folder of containerd, ctr and the runc shim of one version; it comes first in the daemon's
   * PATH.
   */
  binDir: string;
  /**
   * True if the machine's own release installed it: then it must work here. False if it was only
   * unpacked from a newer release.
   */
  isInstalled: boolean;
  /** True if it was built from its Go module, without cgo, and not packaged. */
  isBuilt: boolean;
}

/**
 * The folder into which `.ci/run` unpacks versions that are not installed, one folder for each
 * package and version.
 */
const unpackedParts = process.env.SLUICE_PARTS_DIR ?? path.join(homedir(), ".cache/sluice/real-parts");

/**
 * Every kubectl release on this machine, oldest first, one per version: in PATH, beside the file that PATH's kubectl links
 * to (`kubectl.1.27` ...), and in the folders of SLUICE_KUBECTLS (separated like PATH), or else those `.ci/run` unpacked.
 */
export function findKubectls(): readonly Kubectl[] {
  return once("kubectl", () => {
    const installed = findInPath("kubectl");
    const folders = [
      ...(installed ? [path.dirname(installed), path.dirname(realpathSync(installed))] : []),
      ...(pathList(process.env.SLUICE_KUBECTLS) ?? unpackedFolders("kubectl")),
    ];
    const files = folders.flatMap((folder) =>
      namesIn(folder)
        .filter((name) => /^kubectl(?:\.\d+\.\d+)?$/.test(name))
        .map((name) => path.join(folder, name)),
    );
    const byVersion = new Map<string, Kubectl>();
    for (const file of new Set(files.filter(isExecutable).map((name) => realpathSync(name)))) {
      const kubectl = readKubectl(file);
      if (kubectl && !byVersion.has(kubectl.version)) byVersion.set(kubectl.version, kubectl);
    }
    return [...byVersion.values()].sort((a, b) => a.minor - b.minor || a.version.localeCompare(b.version));
  });
}

/**
 * Every containerd: the installed one first, then those in the folders of SLUICE_CONTAINERDS, or
 * else those unpacked by `.ci/run` and the one of the Go peers.
 */
export function findContainerds(): readonly Containerd[] {
  return once("containerd", () => {
    const installed = findInPath("containerd");
    const built = goPeerFolder("newest-containerd");
    const folders = [
      ...(installed ? [path.dirname(installed)] : []),
      ...(pathList(process.env.SLUICE_CONTAINERDS) ?? [...unpackedFolders("containerd"), built]),
    ];
    return [...new Set(folders)].flatMap((binDir) => {
      const found = readBinary(path.join(binDir, "containerd"), ["--version"], / v?(\d+\.\d+\.\d+)/);
      return found
        ? [{ ...found, binDir, isInstalled: found.path === installed, isBuilt: binDir === built }]
        : [];
    });
  });
}

/**
 * Every asciinema, oldest first: the one in PATH, and those that `.ci/run` installed. Versions
 * before 2.4 show nothing without a terminal of their own.
 */
export function findAsciinemas(): readonly Binary[] {
  return once("asciinema", () => {
    const installed = namesIn(unpackedParts)
      .filter((folder) => /^asciinema(?:-|$)/.test(folder))
      .map((folder) => path.join(unpackedParts, folder, "bin/asciinema"));
    const files = [findInPath("asciinema"), ...installed].filter((file) => file !== undefined);
    const pattern = /asciinema ((?:2\.[4-9]|[3-9]\.\d+)\.\d+)/;
    const binaries = files.flatMap((file) => readBinary(file, ["--version"], pattern) ?? []);
    const byVersion = new Map(binaries.map((binary) => [binary.version, binary]));
    return [...byVersion.values()].sort((a, b) => a.version.localeCompare(b.version));
  });
}

/**
 * The folder of what `scripts/build-cluster.mjs` has built, and its Kubernetes version. Undefined
 * if any program is missing.
 */
export function findClusterPrograms(): { folder: string; versions: readonly string[] } | undefined {
  return once("cluster", () => {
    const folder = clusterProgramFolder();
    if (!CLUSTER_PROGRAMS.every((name) => isExecutable(path.join(folder, name)))) return undefined;
    const server = readBinary(path.join(folder, "kube-apiserver"), ["--version"], / v(\d+\.\d+\.\d+)/);
    return server && { folder, versions: [server.version] };
  });
}

/**
 * Kubernetes' own tests and the program of their pods, which `scripts/build-cluster.mjs` builds if
 * it can.
 */
export function findE2ePrograms(): { e2e: string; agnhost: string } | undefined {
  const [e2e, agnhost] = ["e2e.test", "agnhost"].map((name) => path.join(clusterProgramFolder(), name));
  return e2e !== undefined && agnhost !== undefined && isExecutable(e2e) && isExecutable(agnhost)
    ? { e2e, agnhost }
    : undefined;
}

/** metrics-server, which `scripts/build-cluster.mjs` builds if it can. */
export function findMetricsServer(): string | undefined {
  const file = path.join(clusterProgramFolder(), "metrics-server");
  return isExecutable(file) ? file : undefined;
}

function clusterProgramFolder(): string {
  return path.join(process.env.SLUICE_CLUSTER_DIR ?? path.join(homedir(), ".cache/sluice/cluster"), "bin");
}

const CLUSTER_PROGRAMS = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
  "kubectl",
];

/**
 * A program in PATH, or from `npm run build:cluster`, with its version in `versionPattern`'s first
 * group.
 */
export function findProgram(
  names: readonly string[],
  arguments_: string[],
  versionPattern: RegExp,
): Binary | undefined {
  return once(names.join(), () => {
    for (const name of names) {
      const file = findInPath(name) ?? path.join(clusterProgramFolder(), name);
      const found = readBinary(file, arguments_, versionPattern);
      if (found) return found;
    }
    return undefined;
  });
}

function readKubectl(file: string): Kubectl | undefined {
  const found = readBinary(file, ["version", "--client", "-o", "json"], /"gitVersion":\s*"v([^"]+)"/);
  // Google's `kubectl` is a dispatcher that starts another kubectl by the server's version, not a
  // release of its own.
  if (!found || found.version.includes("dispatcher")) return undefined;
  return { ...found, minor: Number(found.version.split(".")[1]) };
}

function readBinary(file: string, arguments_: string[], versionPattern: RegExp): Binary | undefined {
  if (!isExecutable(file)) return undefined;
  const { stdout, stderr } = spawnSync(file, arguments_, {
    encoding: "utf8",
    timeout: 20_000,
    stdio: ["ignore", "pipe", "pipe"],
  });
  // nginx prints its version on stderr.
  const version = versionPattern.exec(`${stdout ?? ""}\n${stderr ?? ""}`)?.[1];
  return version === undefined ? undefined : { version, path: file };
}

/** Debian installs daemons in sbin folders, which an ordinary user's PATH may lack. */
function findInPath(name: string): string | undefined {
  const folders = [...(pathList(process.env.PATH) ?? []), "/usr/local/sbin", "/usr/sbin", "/sbin"];
  return folders.map((folder) => path.join(folder, name)).find(isExecutable);
}

function unpackedFolders(name: string): string[] {
  return namesIn(unpackedParts)
    .filter((folder) => folder.startsWith(`${name}-`))
    .sort()
    .map((folder) => path.join(unpackedParts, folder, "usr/bin"));
}

function pathList(value: string | undefined): string[] | undefined {
  return value === undefined ? undefined : value.split(path.delimiter).filter(Boolean);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const found = new Map<string, unknown>();

/** Asking nine kubectls for their version takes a second, so each process asks only once. */
function once<T>(key: string, find: () => T): T {
  if (!found.has(key)) found.set(key, find());
  return found.get(key) as T;
}
