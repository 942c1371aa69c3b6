import { lstat, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { type Cluster, type ContainerName, executorFor, referenceIn } from "./cluster.ts";
import { type CopyContext, type CopyProgress, noProgress } from "./copy/copy-context.ts";
import { CopyError, localError, withRetries } from "./copy/copy-error.ts";
import { inspect, type RemotePath } from "./copy/remote-path.ts";
import { RemoteShell } from "./copy/remote-shell.ts";
import type { Executor } from "./executors.ts";
import { type CommandPath, execPath } from "./pod-paths.ts";
import { SessionError } from "./sessions/session-error.ts";

const DEFAULT_RETRIES = 5;

export interface CopyOptions {
  /** Attempts in a row without progress before the copy fails. Default: 5. */
  readonly retries?: number | undefined;
  /** Compares SHA-256 if the container has `sha256sum` or `openssl`. Default: true. */
  readonly verify?: boolean | undefined;
  /** Copies file modes. Default: true. */
  readonly preserveMode?: boolean | undefined;
  /** Ends the copy with SessionError or ConnectError "aborted". Default: nothing does. */
  readonly signal?: AbortSignal | undefined;
  /** Runs the copy's commands. Default: WebSocket, then SPDY, as kubectl. */
  readonly executorFor?: ((path: CommandPath) => Executor) | undefined;
  /** Called once for each copy; `totalBytes` is 0 if unknown. Default: no progress is reported. */
  startProgress?(name: string, totalBytes: number): CopyProgress | Promise<CopyProgress>;
  /** The copy differs from its source: a skipped link or device, a file that grew. Default: ignored. */
  onWarning?(text: string): void;
  /** A connection was lost, and the copy continues. Default: ignored. */
  onRetry?(text: string): void;
}

/**
 * Copies a local file, folder or stream into a container; an existing folder there receives it
 * under its own name. `destination` appears complete or not at all. Continues after lost
 * connections, except with a stream. Names may contain control characters, also in error messages.
 * Throws CopyError, ConnectError, SessionError, CredentialsError.
 */
export async function copyTo(
  cluster: Cluster,
  container: ContainerName,
  source: string | Readable,
  destination: string,
  options: CopyOptions = {},
): Promise<void> {
  const context = contextOf(cluster, container, options);
  const name = typeof source === "string" ? path.basename(path.resolve(source)) : "";
  if (name.includes("\uFFFD"))
    throw new CopyError("usage", `${name}: the name of the working folder is not UTF-8`);
  const found = await look(destination, context, name);
  if (found.kind === "other") throw new CopyError("usage", `${destination} is neither a file nor a folder`);
  const refuseSlash = (): void => {
    if (found.kind !== "folder" && destination.endsWith("/"))
      throw new CopyError("usage", `${destination} is not a folder`);
  };
  if (typeof source !== "string") {
    refuseSlash();
    if (found.kind === "folder") throw new CopyError("usage", `${destination} is a folder; stdin is a file`);
    const { uploadStream } = await import("./copy/upload-file.ts");
    await uploadStream(source, found.path, found, context);
    return;
  }
  const stats = await stat(source).catch(() => undefined);
  if (stats === undefined) throw new CopyError("usage", `${source} doesn't exist in local filesystem`);
  const target = found.kind === "folder" ? path.posix.join(found.path, name) : found.path;
  if (stats.isDirectory()) {
    const { uploadFolder } = await import("./copy/upload-folder.ts");
    await uploadFolder(source, target, found, context);
  } else if (stats.isFile()) {
    refuseSlash();
    const { uploadFile } = await import("./copy/upload-file.ts");
    await uploadFile(source, target, found, context);
  } else throw new CopyError("usage", `${source} is neither a file nor a folder`);
}

/**
 * Copies a file or folder out of a container, to a local path or, a file, to a stream; an existing
 * local folder receives it under its own name. A local path appears complete or not at all.
 * Continues after lost connections. Names may contain control characters, also in error messages.
 * Throws CopyError, ConnectError, SessionError, CredentialsError.
 */
export async function copyFrom(
  cluster: Cluster,
  container: ContainerName,
  source: string,
  destination: string | Writable,
  options: CopyOptions = {},
): Promise<void> {
  const context = contextOf(cluster, container, options);
  const found = await look(source, context);
  if (found.kind === "absent") throw new CopyError("usage", `${source}: no such file or directory`);
  if (found.kind === "other") throw new CopyError("usage", `${source} is neither a file nor a folder`);
  if (typeof destination !== "string") {
    if (found.kind === "folder") throw new CopyError("usage", `${source} is a folder; stdout takes a file`);
    const { downloadToStream } = await import("./copy/download-file.ts");
    await downloadToStream(found, destination, context);
    return;
  }
  const target = await localTarget(destination, path.posix.basename(found.path));
  if (found.kind === "folder") {
    const { downloadFolder } = await import("./copy/download-folder.ts");
    await downloadFolder(found, target, context);
    return;
  }
  const { downloadFile } = await import("./copy/download-file.ts");
  await downloadFile(found, target, context);
}

function contextOf(cluster: Cluster, container: ContainerName, options: CopyOptions): CopyContext {
  const reference = referenceIn(cluster, container);
  const { signal, executorFor: given, startProgress = noProgress } = options;
  const executor = given ?? ((commandPath) => executorFor(cluster.target, commandPath));
  return {
    shell: new RemoteShell(
      (command, streams) => executor(execPath(reference, command)).stream(streams),
      signal,
    ),
    retries: options.retries ?? DEFAULT_RETRIES,
    verifies: options.verify ?? true,
    preservesMode: options.preserveMode ?? true,
    signal,
    startProgress,
    note: (text) => options.onRetry?.(text),
    warn: (text) => options.onWarning?.(text),
  };
}

async function look(remotePath: string, context: CopyContext, name = ""): Promise<RemotePath> {
  try {
    return await withRetries(() => inspect(context.shell, remotePath, name), {
      ...context,
      progress: () => 0,
    });
  } catch (error) {
    if (isMissingProgram(error))
      throw new CopyError("remote", "the container has no sh, which copying needs");
    throw error;
  }
}

/** An existing folder receives the file under its own name; any other path is used unchanged. */
async function localTarget(destination: string, name: string): Promise<string> {
  const stats = await stat(destination).catch(() => undefined);
  if (stats?.isDirectory()) return path.join(destination, name);
  const isLink = (await lstat(destination).catch(() => undefined))?.isSymbolicLink() === true;
  if (isLink && stats === undefined) throw new CopyError("usage", `${destination} is a link to nothing`);
  if (destination.endsWith("/")) throw new CopyError("usage", `${destination} is not a folder`);
  // Not resolved: the working folder's own name need not be UTF-8.
  await mkdir(path.dirname(destination), { recursive: true }).catch((error: unknown) => {
    throw localError(error);
  });
  return path.normalize(destination);
}

/** Whether the container lacks the program: runtimes report a failure, shells an exit code. */
function isMissingProgram(error: unknown): boolean {
  if (!(error instanceof SessionError) || error.code !== "remote-failure") return false;
  return /not found|no such file|executable file/i.test(error.message);
}
