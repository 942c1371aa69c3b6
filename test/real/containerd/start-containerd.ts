import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, writeFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { CriClient } from "../../support/cri.ts";
import { eventually } from "../../support/eventually.ts";
import type { Containerd } from "../../support/real-parts-finder.ts";
import { busyboxImagesArchive } from "./busybox-images.ts";
import {
  cgroupParentOf,
  FOLDER_PREFIX,
  ownerFileOf,
  ownerText,
  removeAbandonedDaemons,
  removeDaemon,
} from "./clean-up.ts";
import { type DaemonFiles, daemonFiles, writeDaemonFiles } from "./daemon-files.ts";
import { addPodNetwork, type PodNetwork } from "./pod-network.ts";

export interface RunningContainerd {
  version: string;
  folder: string;
  /** Path of the unix socket of its CRI service. */
  socket: string;
  processId: number;
  cri: CriClient;
  /** For `PodOptions.cgroupParent`: clean-up finds what is left by it. */
  cgroupParent: string;
  podLogs: string;
  /** Where it was asked for. */
  network: PodNetwork | undefined;
  /** SIGKILL, and a new process over the same files: containers live on. */
  restart(): Promise<void>;
  /** Removes every pod, then the daemon, its mounts, cgroups and files. Works as well after the daemon was killed. */
  stop(): Promise<void>;
}

/** For the removal of pods, and again for the daemon's end. */
const STOP_MS = 30_000;

/** Starts a containerd of its own in a new temporary folder, with the images of busybox-images.ts imported. Needs root. */
export async function startContainerd(
  binaries: Containerd,
  { hasPodNetwork = false } = {},
): Promise<RunningContainerd> {
  await removeAbandonedDaemons();
  const files = daemonFiles(mkdtempSync(path.join(tmpdir(), FOLDER_PREFIX)));
  writeFileSync(ownerFileOf(files.folder), ownerText(process.pid));
  try {
    const network = hasPodNetwork ? await addPodNetwork(files.folder) : undefined;
    await writeDaemonFiles(files, network);
    let daemon = spawnDaemon(binaries, files);
    const cri = await connect(daemon, files);
    await importImages(binaries, files.socket, busyboxImagesArchive());
    return {
      version: binaries.version,
      folder: files.folder,
      socket: files.socket,
      processId: daemon.pid ?? 0,
      cri,
      cgroupParent: cgroupParentOf(files.folder),
      podLogs: files.podLogs,
      network,
      restart: async () => {
        const ended = once(daemon, "exit");
        daemon.kill("SIGKILL");
        await ended;
        daemon = spawnDaemon(binaries, files);
        (await connect(daemon, files)).close();
      },
      stop: () => stop(daemon, cri, files),
    };
  } catch (error) {
    await removeDaemon(files.folder);
    throw error;
  }
}

function spawnDaemon(binaries: Containerd, files: DaemonFiles): ChildProcess {
  const log = openSync(files.log, "a");
  return spawn(path.join(binaries.binDir, "containerd"), ["--config", files.config], {
    stdio: ["ignore", log, log],
    // The shim is looked up in PATH before the daemon's own folder: first, or versions mix.
    env: { ...process.env, PATH: `${binaries.binDir}:/usr/sbin:/usr/bin:/sbin:/bin` },
  });
}

async function connect(daemon: ChildProcess, files: DaemonFiles): Promise<CriClient> {
  return eventually("containerd answers CRI calls", async () => {
    if (daemon.exitCode !== null) throw new Error(`containerd ended: ${await readFile(files.log, "utf8")}`);
    const cri = new CriClient(files.socket);
    try {
      await cri.version();
      return cri;
    } catch (error) {
      cri.close();
      throw error;
    }
  });
}

/** Takes images out of an archive in OCI layout, through the file `images.tar` beside the daemon's socket. */
export async function importImages(binaries: Containerd, socket: string, images: Buffer): Promise<void> {
  const archive = path.join(path.dirname(socket), "images.tar");
  await writeFile(archive, images);
  const ctr = path.join(binaries.binDir, "ctr");
  // CRI sees only the images of this namespace.
  await promisify(execFile)(ctr, ["--address", socket, "--namespace", "k8s.io", "images", "import", archive]);
}

async function stop(daemon: ChildProcess, cri: CriClient, files: DaemonFiles): Promise<void> {
  // Through CRI first, because the shims then end by themselves. A daemon that died leaves all of it to removeDaemon.
  // Neither answers for sure on a busy machine: a call or a daemon that hangs is left to removeDaemon, too.
  const closing = setTimeout(() => cri.close(), STOP_MS);
  await cri.removePods().catch(() => {});
  clearTimeout(closing);
  cri.close();
  if (daemon.exitCode === null && daemon.signalCode === null) {
    const ended = once(daemon, "exit");
    daemon.kill("SIGTERM");
    const killing = setTimeout(() => daemon.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(killing);
  }
  await removeDaemon(files.folder);
}
