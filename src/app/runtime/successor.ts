import { type ChildProcess, spawn } from "node:child_process";
import type { Server } from "node:net";
import { isSingleBinary } from "../../config/own-files.ts";
import { SUCCESSION_VARIABLE, SUCCESSION_VERSION, type Succession } from "./inheritance.ts";
import type { Lineage } from "./lineage.ts";

/** A new program that does not serve in this time is killed, and the old one serves on. */
export const MAX_SUCCESSOR_START_MS = 60_000;

/** What the new program sends when it serves. */
const SERVING = "serving";

/**
 * Starts this program again, as it is on disk now, with the listening sockets of this one. Resolves when it serves.
 * Rejects, and leaves no process, where it does not; or when `cancelled` is.
 */
export async function startSuccessor(
  { sockets, replicaId, folder }: Lineage,
  cancelled: AbortSignal,
  maxStartMs: number = MAX_SUCCESSOR_START_MS,
): Promise<{ readonly pid: number | undefined }> {
  const { open } = sockets;
  const succession: Succession = {
    version: SUCCESSION_VERSION,
    sockets: open.map(({ name, configured }) => ({ name, configured })),
    replicaId,
    socketFolder: folder,
  };
  // A single binary has itself in place of the script.
  const own = process.argv.slice(isSingleBinary ? 2 : 1);
  const child = spawn(program(), [...process.execArgv, ...own], {
    env: { ...process.env, [SUCCESSION_VARIABLE]: JSON.stringify(succession) },
    stdio: ["inherit", "inherit", "inherit", ...open.map(({ server }) => descriptorOf(server)), "ipc"],
  });
  return serving(child, cancelled, maxStartMs).then(
    () => {
      child.unref();
      child.channel?.unref();
      return { pid: child.pid };
    },
    (error: Error) => {
      child.kill("SIGKILL");
      throw error;
    },
  );
}

/** The single binary by the path that it was started by: where that is a link, an upgrade is another file behind it. */
function program(): string {
  const { argv0, execPath } = process;
  return isSingleBinary && argv0.includes("/") ? argv0 : execPath;
}

/** Node has no public name for it. Throws where the server does not listen. */
function descriptorOf(server: Server): number {
  const { _handle: handle } = server as Server & { readonly _handle?: { readonly fd: number } | null };
  if (handle === undefined || handle === null || handle.fd < 0)
    throw new Error("a listener has no descriptor");
  return handle.fd;
}

function serving(child: ChildProcess, cancelled: AbortSignal, maxStartMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`it did not serve within ${maxStartMs} ms`)), maxStartMs);
    const settle = (): void => clearTimeout(timer);
    child
      .once("error", reject)
      .once("exit", (code, signal) => reject(new Error(`it ended with ${signal ?? code}`)));
    child.once("message", () => resolve());
    cancelled.addEventListener("abort", () => reject(new Error("this program ends")), { once: true });
    child.once("exit", settle).once("message", settle);
  });
}

/** In the new program: the old one may end. Resolves when it has. */
export function relieve(predecessor: NodeJS.Process = process): Promise<void> {
  const gone = new Promise<void>((resolve) => {
    if (predecessor.connected) predecessor.once("disconnect", resolve);
    else resolve();
  });
  predecessor.send?.(SERVING);
  predecessor.channel?.unref();
  return gone;
}
