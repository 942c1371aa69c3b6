import { lstat, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import { SessionError } from "@sluice/client/internal/session-error";
import { maskControls } from "../../observability/mask-controls.ts";
import { findContainer } from "../client/command-target.ts";
import { type ClientConnection, openConnection } from "../client/connection.ts";
import { reportError } from "../client/report-error.ts";
import type { Invocation } from "../command.ts";
import type { cpFlags } from "../commands/cp.ts";
import { UsageError } from "../usage-error.ts";
import { CopyError } from "./copy-error.ts";
import type { CopyOptions } from "./copy-options.ts";
import { inspect, type RemotePath } from "./remote-path.ts";
import { isMissingProgram, RemoteShell } from "./remote-shell.ts";
import { withRetries } from "./retry.ts";

type RemoteEnd = Extract<CopyEnd, { type: "remote" }>;

/**
 * Copies a file or a folder to or from a container. Loads only the needed modules, because a small
 * copy is mostly start-up. A failed copy leaves nothing that looks complete.
 */
export async function run({ values, operands }: Invocation<typeof cpFlags>): Promise<number> {
  if (operands.length !== 2) throw new UsageError("source and destination are required");
  // Node decodes arguments as UTF-8 and loses other bytes, so the path would name another file.
  if (operands.some((operand) => operand.includes("\uFFFD")))
    throw new UsageError("a path is not UTF-8; name a folder above it, whose files may have any name");
  const [source, destination] = operands.map(parseCopyEnd) as [CopyEnd, CopyEnd];
  const remote = oneRemote(source, destination);
  const opened = await openConnection(values);
  const connection: ClientConnection = { ...opened, namespace: remote.namespace ?? opened.namespace };
  const container = await findContainer(connection, `pod/${remote.pod}`, values.container, {
    isQuiet: true,
    timeoutMs: 0,
  });
  if (typeof container === "number") return container;
  const options: CopyOptions = {
    shell: new RemoteShell(connection, container),
    verbosity: connection.verbosity,
    retries: values.retries,
    verifies: !values["no-verify"],
    preservesMode: !values["no-preserve"],
    isQuiet: values.quiet,
  };
  try {
    if (source.type === "remote") await download(source, destination, options);
    else await upload(source, destination as RemoteEnd, options);
    return 0;
  } catch (error) {
    return report(error);
  }
}

async function download(source: RemoteEnd, destination: CopyEnd, options: CopyOptions): Promise<void> {
  const found = await look(source.path, options);
  if (found.kind === "absent") throw new CopyError("usage", `${source.path}: no such file or directory`);
  if (found.kind === "other") throw new CopyError("usage", `${source.path} is neither a file nor a folder`);
  if (destination.type !== "local") {
    if (found.kind === "folder")
      throw new CopyError("usage", `${source.path} is a folder; stdout takes a file`);
    const { downloadToStream } = await import("./download-file.ts");
    await downloadToStream(found, process.stdout, options);
    return;
  }
  const target = await localTarget(destination.path, path.posix.basename(found.path));
  if (found.kind === "folder") {
    const { downloadFolder } = await import("./download-folder.ts");
    await downloadFolder(found, target, options);
    return;
  }
  const { downloadFile } = await import("./download-file.ts");
  await downloadFile(found, target, options);
}

async function upload(source: CopyEnd, destination: RemoteEnd, options: CopyOptions): Promise<void> {
  const name = source.type === "local" ? path.basename(path.resolve(source.path)) : "";
  if (name.includes("\uFFFD"))
    throw new CopyError("usage", `${name}: the name of the working folder is not UTF-8`);
  const found = await look(destination.path, options, name);
  if (found.kind === "other")
    throw new CopyError("usage", `${destination.path} is neither a file nor a folder`);
  const refuseSlash = (): void => {
    if (found.kind !== "folder" && destination.path.endsWith("/"))
      throw new CopyError("usage", `${destination.path} is no folder`);
  };
  if (source.type !== "local") {
    refuseSlash();
    if (found.kind === "folder")
      throw new CopyError("usage", `${destination.path} is a folder; stdin is a file`);
    const { uploadStream } = await import("./upload-file.ts");
    await uploadStream(process.stdin, found.path, found, options);
    return;
  }
  const stats = await stat(source.path).catch(() => undefined);
  if (stats === undefined) throw new CopyError("usage", `${source.path} doesn't exist in local filesystem`);
  const target = found.kind === "folder" ? path.posix.join(found.path, name) : found.path;
  if (stats.isDirectory()) {
    const { uploadFolder } = await import("./upload-folder.ts");
    await uploadFolder(source.path, target, found, options);
  } else if (stats.isFile()) {
    refuseSlash();
    const { uploadFile } = await import("./upload-file.ts");
    await uploadFile(source.path, target, found, options);
  } else throw new CopyError("usage", `${source.path} is neither a file nor a folder`);
}

async function look(remotePath: string, options: CopyOptions, name = ""): Promise<RemotePath> {
  try {
    const { retries, shell, verbosity } = options;
    return await withRetries(() => inspect(shell, remotePath, name), {
      retries,
      progress: () => 0,
      note: verbosity.note,
    });
  } catch (error) {
    if (isMissingProgram(error))
      throw new CopyError("remote", "the container has no sh, which copying needs");
    throw error;
  }
}

/** An existing folder receives the file under its own name; any other path is used as it is. */
async function localTarget(destination: string, name: string): Promise<string> {
  const stats = await stat(destination).catch(() => undefined);
  if (stats?.isDirectory()) return path.join(destination, name);
  const isLink = (await lstat(destination).catch(() => undefined))?.isSymbolicLink() === true;
  if (isLink && stats === undefined) throw new CopyError("usage", `${destination} is a link to nothing`);
  if (destination.endsWith("/")) throw new CopyError("usage", `${destination} is no folder`);
  // Not resolved: the working folder's own name need not be UTF-8.
  await mkdir(path.dirname(destination), { recursive: true });
  return path.normalize(destination);
}

function oneRemote(source: CopyEnd, destination: CopyEnd): RemoteEnd {
  if (source.type === "remote" && destination.type === "remote")
    throw new UsageError("one of src or dest must be a local file specification");
  if (source.type === "remote") return source;
  if (destination.type === "remote") return destination;
  throw new UsageError("one of src or dest must be a remote file specification");
}

function report(error: unknown): number {
  if (error instanceof ConnectError || error instanceof SessionError) return reportError(error);
  const isExpected = error instanceof CopyError || (error instanceof Error && "syscall" in error);
  if (!isExpected) throw error;
  process.stderr.write(`error: ${maskControls((error as Error).message)}\n`);
  return 1;
}

/** One end of a copy, written as for `kubectl cp`. `-` is this process' stdin or stdout. */
type CopyEnd =
  | { readonly type: "local"; readonly path: string }
  | { readonly type: "stdio" }
  | {
      readonly type: "remote";
      readonly namespace?: string | undefined;
      readonly pod: string;
      readonly path: string;
    };

/** `PATH`, `-`, `POD:PATH` or `NAMESPACE/POD:PATH`. Throws UsageError. */
function parseCopyEnd(text: string): CopyEnd {
  if (text === "-") return { type: "stdio" };
  const colon = text.indexOf(":");
  // A pod's name neither starts with a dot nor follows a slash.
  if (colon === -1 || /^[./~\\]/.test(text)) return { type: "local", path: text };
  const owner = text.slice(0, colon).split("/");
  const path = text.slice(colon + 1);
  const [first = "", second] = owner;
  if (owner.length > 2 || first === "" || second === "") {
    throw new UsageError("filespec must match the canonical format: [[namespace/]pod:]file/path");
  }
  if (path === "") throw new UsageError("filepath can not be empty");
  return second === undefined
    ? { type: "remote", pod: first, path }
    : { type: "remote", namespace: first, pod: second, path };
}
