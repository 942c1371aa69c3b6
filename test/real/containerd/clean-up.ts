import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { eventually } from "../../support/eventually.ts";
import { removePodNetwork } from "./pod-network.ts";

export const FOLDER_PREFIX = "sluice-cri-";
const OWNER_FILE = "owner";
const cgroupRoot = "/sys/fs/cgroup";

/** The cgroup of everything that the daemon of `folder` runs: as unique as the folder. */
export function cgroupParentOf(folder: string): string {
  return `/${path.basename(folder)}`;
}

/**
 * Ends every process of the daemon of `folder` and removes its mounts, cgroups and files. Relies on nothing that a daemon
 * killed with SIGKILL would have left undone: its shims and containers live on, and are found by socket and by cgroup.
 */
export async function removeDaemon(folder: string): Promise<void> {
  await endProcesses(() => daemonProcesses(folder));
  await endProcesses(() => cgroupFolders(folder).flatMap(processesIn));
  await eventually(`unmount everything under ${folder}`, async () => {
    for (const mount of mountsUnder(folder)) await promisify(execFile)("umount", [mount]);
    return mountsUnder(folder).length === 0;
  });
  await eventually(`remove the cgroups of ${folder}`, () => {
    for (const cgroup of cgroupFolders(folder).reverse()) rmdirSync(cgroup);
    return cgroupFolders(folder).length === 0;
  });
  await removePodNetwork(folder);
  rmSync(folder, { recursive: true, force: true });
}

/** What a test run that was itself killed left behind: daemons whose owner is no more. */
export async function removeAbandonedDaemons(): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith(FOLDER_PREFIX))) {
    const folder = path.join(tmpdir(), name);
    if (!isOwned(folder)) await removeDaemon(folder);
  }
}

/** The text of the file `owner`: process ids are used again, so the owner's start time goes with its id. */
export function ownerText(processId: number): string {
  return `${processId} ${startTimeOf(processId)}`;
}

export function ownerFileOf(folder: string): string {
  return path.join(folder, OWNER_FILE);
}

function isOwned(folder: string): boolean {
  const owner = readText(ownerFileOf(folder));
  return owner !== "" && owner === ownerText(Number(owner.split(" ")[0]));
}

/** In clock ticks since boot: field 22 of stat, counted behind the process's name, which may hold blanks. */
function startTimeOf(processId: number): string {
  const stat = readText(`/proc/${processId}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "gone";
}

async function endProcesses(find: () => number[]): Promise<void> {
  await eventually("processes end", () => {
    const found = find();
    for (const processId of found) {
      try {
        process.kill(processId, "SIGKILL");
      } catch {
        // It ended by itself since it was listed.
      }
    }
    return found.length === 0;
  });
}

/** The daemon, its shims, and a cluster's other programs: those with a path of this folder among their arguments. */
function daemonProcesses(folder: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((processId) => {
      const [program = "", ...rest] = readText(`/proc/${processId}/cmdline`).split("\0");
      return (
        /^(containerd|etcd$|kube|node$)/.test(path.basename(program)) &&
        rest.some((argument) => argument.includes(`${folder}/`))
      );
    });
}

/** The folders of our cgroup in every hierarchy (version 1 has one per controller, version 2 one), parents first. */
function cgroupFolders(folder: string): string[] {
  const name = path.basename(folder);
  const roots = [cgroupRoot, ...subfolders(cgroupRoot)].map((root) => path.join(root, name));
  return [...new Set(roots)].filter((root) => existsSync(root)).flatMap(withSubfolders);
}

function withSubfolders(folder: string): string[] {
  return [folder, ...subfolders(folder).flatMap(withSubfolders)];
}

function subfolders(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => path.join(folder, entry.name));
}

function processesIn(cgroup: string): number[] {
  return readText(path.join(cgroup, "cgroup.procs")).split("\n").filter(Boolean).map(Number);
}

/** Innermost first. */
function mountsUnder(folder: string): string[] {
  return readText("/proc/self/mounts")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((mount) => mount.startsWith(`${folder}/`))
    .reverse();
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
