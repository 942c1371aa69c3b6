import { type ChildProcess, spawn } from "node:child_process";
import type { Server } from "node:net";
import { isSingleBinary } from "@sluice/client/internal/config/version";
import { type Lineage, SUCCESSION_VARIABLE, SUCCESSION_VERSION, type Succession } from "./inheritance.ts";

/**
 * How long the program that replaces this one at SIGUSR2 may take until it serves. Past it, it is
 * killed, and this one continues to serve.
 */
const MAX_SUCCESSOR_START_MS = 60_000;

/** The message with which the successor reports that it serves. */
const SERVING = "serving";

/**
 * Starts this program again from its file on disk, with this one's listening sockets. Resolves when
 * the successor serves. If it fails or `cancelled` aborts, kills it and rejects.
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
  // A single binary has no script among its arguments.
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

/**
 * The path by which the single binary was started: if it is a link, an upgrade changes the link's
 * target.
 */
function program(): string {
  const { argv0, execPath } = process;
  return isSingleBinary && argv0.includes("/") ? argv0 : execPath;
}

/** Node has no public API for the descriptor. Throws if the server is not listening. */
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

/** Called in the successor: tells the predecessor to end. Resolves when it has. */
export function relieve(predecessor: NodeJS.Process = process): Promise<void> {
  const gone = new Promise<void>((resolve) => {
    if (predecessor.connected) predecessor.once("disconnect", resolve);
    else resolve();
  });
  predecessor.send?.(SERVING);
  predecessor.channel?.unref();
  return gone;
}
