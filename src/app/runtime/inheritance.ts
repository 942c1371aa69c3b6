import { type ChildProcess, spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import type { Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { isSingleBinary } from "@sluice/client/internal/config/version";
import type { Component } from "../../lifecycle/component.ts";
import { type InheritedSocket, ListeningSockets } from "../../net/listen.ts";
import { newReplicaId } from "../../sessions/session-id.ts";

/** The first descriptor after standard input, output and error: sd_listen_fds(3)'s SD_LISTEN_FDS_START. */
const FIRST_DESCRIPTOR = 3;

/** The variable with which a program passes its state to its successor, as JSON. */
const SUCCESSION_VARIABLE = "SLUICE_SUCCESSION";

/** A start with another version fails, and the predecessor continues to serve. */
const SUCCESSION_VERSION = 1;

interface Succession {
  readonly version: typeof SUCCESSION_VERSION;
  /** In descriptor order. */
  readonly sockets: readonly (Pick<InheritedSocket, "configured"> & { readonly name: string })[];
  readonly replicaId: string;
  readonly socketFolder?: string | undefined;
}

interface Inheritance {
  readonly lineage: Lineage;
  /** True if a predecessor is running; it ends once this process serves. */
  readonly hasPredecessor: boolean;
  /** The problem, if a service manager passed sockets that are meant for another process. */
  readonly problem?: string | undefined;
}

/**
 * Reads the sockets that a predecessor or a service manager passed to this process. Removes the
 * variables from `environment`, so that children do not inherit them. Throws ConfigurationError.
 */
export function inherit(
  environment: NodeJS.ProcessEnv,
  configured: readonly string[],
  pid: number = process.pid,
): Inheritance {
  const {
    [SUCCESSION_VARIABLE]: succession,
    LISTEN_FDS: count,
    LISTEN_PID: owner,
    LISTEN_FDNAMES: names,
  } = environment;
  for (const name of [SUCCESSION_VARIABLE, "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"])
    delete environment[name];
  if (succession !== undefined) return { lineage: succeed(succession), hasPredecessor: true };
  if (count === undefined) return { lineage: new Lineage(), hasPredecessor: false };
  if (owner !== String(pid)) {
    const problem = `LISTEN_PID is ${JSON.stringify(owner)}, and this process is ${pid}: its sockets are not taken`;
    return { lineage: new Lineage(), hasPredecessor: false, problem };
  }
  const sockets = activated(count, names ?? "", configured);
  return { lineage: new Lineage(new ListeningSockets(sockets)), hasPredecessor: false };
}

/**
 * Assigns a service manager's sockets to listeners: FileDescriptorName= names the listener, as in the
 * configuration.
 */
function activated(
  count: string,
  names: string,
  configured: readonly string[],
): ReadonlyMap<string, InheritedSocket> {
  const named = names.split(":");
  if (String(named.length) !== count) {
    throw wrong("LISTEN_FDNAMES", `has ${named.length} names, and LISTEN_FDS is ${JSON.stringify(count)}`);
  }
  const sockets = new Map<string, InheritedSocket>();
  for (const [index, name] of named.entries()) {
    if (!configured.includes(name)) {
      const expected = `FileDescriptorName= must be one of ${configured.join(", ")}`;
      throw wrong("LISTEN_FDNAMES", `${JSON.stringify(name)} is not a configured listener: ${expected}`);
    }
    if (sockets.has(name)) throw wrong("LISTEN_FDNAMES", `two sockets are named ${JSON.stringify(name)}`);
    sockets.set(name, { descriptor: FIRST_DESCRIPTOR + index });
  }
  return sockets;
}

function succeed(text: string): Lineage {
  const { version, sockets, replicaId, socketFolder } = JSON.parse(text) as Succession;
  if (version !== SUCCESSION_VERSION) {
    throw wrong(
      SUCCESSION_VARIABLE,
      `is of version ${version}, and this program knows ${SUCCESSION_VERSION}`,
    );
  }
  const inherited = sockets.map(
    ({ name, configured }, index) => [name, { descriptor: FIRST_DESCRIPTOR + index, configured }] as const,
  );
  return new Lineage(new ListeningSockets(new Map(inherited)), { replicaId, socketFolder });
}

function wrong(source: string, message: string): ConfigurationError {
  return new ConfigurationError([{ source, line: 0, column: 0, path: "", message }]);
}

/** The folder of the gateway's Unix sockets. Only its own user may enter it. */
export interface SocketFolder extends Component {
  readonly path: string;
}

/**
 * What a program inherits from its predecessor and passes to its successor: listening sockets,
 * replica id and socket folder.
 */
export class Lineage {
  readonly sockets: ListeningSockets;
  /** From `newReplicaId`. Predecessor and successor share it, so other replicas see one replica. */
  readonly replicaId: string;
  #folder: string | undefined;
  #hasSuccessor = false;

  constructor(
    sockets: ListeningSockets = new ListeningSockets(),
    inherited:
      | { readonly replicaId: string; readonly socketFolder: string | undefined }
      | undefined = undefined,
  ) {
    this.sockets = sockets;
    this.replicaId = inherited?.replicaId ?? newReplicaId();
    this.#folder = inherited?.socketFolder;
  }

  get folder(): string | undefined {
    return this.#folder;
  }

  /** Opens the predecessor's folder, or creates one. Rejects if it cannot be created. */
  async openFolder(): Promise<SocketFolder> {
    const folder = this.#folder ?? (await mkdtemp(path.join(tmpdir(), "sluice-workers-")));
    this.#folder = folder;
    // A start that is abandoned exits without calling `stop`.
    const removeAtExit = (): void => {
      if (!this.#hasSuccessor) rmSync(folder, { recursive: true, force: true });
    };
    process.once("exit", removeAtExit);
    return {
      path: folder,
      stop: async () => {
        process.off("exit", removeAtExit);
        if (!this.#hasSuccessor) await rm(folder, { recursive: true, force: true });
      },
    };
  }

  /** A successor now serves: it owns the shared folder and accepts new connections. */
  handOver(): void {
    this.#hasSuccessor = true;
    this.sockets.close();
  }
}

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

/** The successor ends its predecessor by this. Resolves when the predecessor has disconnected. */
export function relieve(predecessor: NodeJS.Process = process): Promise<void> {
  const gone = new Promise<void>((resolve) => {
    if (predecessor.connected) predecessor.once("disconnect", resolve);
    else resolve();
  });
  predecessor.send?.(SERVING);
  predecessor.channel?.unref();
  return gone;
}
