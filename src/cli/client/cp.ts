import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { type CopyProgress, noProgress } from "@sluice/client/internal/copy/copy-context";
import { CopyError } from "@sluice/client/internal/copy/copy-error";
import { type CopyOptions, copyFrom, copyTo } from "@sluice/client/internal/copy-files";
import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import { SessionError } from "@sluice/client/internal/sessions/session-error";
import { maskControls } from "../../observability/mask-controls.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/cp.ts";
import { type ClientConnection, openConnection } from "./connection.ts";
import { printWarning, reportError } from "./report-error.ts";
import { commandExecutor, findContainer } from "./run-command.ts";

type RemoteEnd = Extract<CopyEnd, { type: "remote" }>;

/**
 * Copies a file or a folder to or from a container. Loads only the modules that it needs, because a
 * small copy is mostly start-up. A failed copy leaves no file that looks complete.
 */
export async function run({ values, operands }: Invocation<typeof command.flags>): Promise<number> {
  if (operands.length !== 2) throw new UsageError("source and destination are required");
  // Node decodes arguments as UTF-8 and loses other bytes, so the path would then name another
  // file.
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
  const { verbosity } = connection;
  const options: CopyOptions = {
    executorFor: (path) => commandExecutor(connection, path),
    retries: values.retries,
    verify: !values["no-verify"],
    preserveMode: !values["no-preserve"],
    onRetry: verbosity.note,
    onWarning: printWarning,
    ...(!values.quiet && { startProgress }),
  };
  try {
    if (source.type === "remote") {
      const to = destination.type === "local" ? destination.path : process.stdout;
      await copyFrom(connection, container, source.path, to, options);
    } else {
      const from = source.type === "local" ? source.path : process.stdin;
      await copyTo(connection, container, from, remote.path, options);
    }
    return 0;
  } catch (error) {
    return report(error);
  }
}

function oneRemote(source: CopyEnd, destination: CopyEnd): RemoteEnd {
  if (source.type === "remote" && destination.type === "remote")
    throw new UsageError("one of src or dest must be a local file specification, PATH");
  if (source.type === "remote") return source;
  if (destination.type === "remote") return destination;
  throw new UsageError("one of src or dest must be a remote file specification, [NAMESPACE/]POD:PATH");
}

function report(error: unknown): number {
  if (error instanceof ConnectError || error instanceof SessionError) return reportError(error);
  const isExpected = error instanceof CopyError || (error instanceof Error && "syscall" in error);
  if (!isExpected) throw error;
  process.stderr.write(`error: ${maskControls(systemErrorText(error))}\n`);
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

/** A progress bar on stderr, if that is a terminal. `totalBytes` 0: unknown. */
async function startProgress(name: string, totalBytes: number): Promise<CopyProgress> {
  if (!process.stderr.isTTY) return noProgress();
  const { default: cliProgress } = await import("cli-progress");
  const format = `${name.slice(-30)} {bar} {percentage}% {mebibytes} MiB {rate} MiB/s {eta_formatted}`;
  const bar = new cliProgress.SingleBar({ format, hideCursor: true, stream: process.stderr });
  const startMs = performance.now();
  // Bytes that a resumed copy passes over count as copied, but not for the rate.
  let [bytes, moved] = [0, 0];
  const inMebibytes = (amount: number): string => (amount / 1024 / 1024).toFixed(1);
  const figures = (): { mebibytes: string; rate: string } => {
    const seconds = Math.max((performance.now() - startMs) / 1_000, 0.001);
    return { mebibytes: inMebibytes(bytes), rate: inMebibytes(moved / seconds) };
  };
  bar.start(Math.max(totalBytes, 1), 0, figures());
  const show = (): void => bar.update(totalBytes === 0 ? 0 : bytes, figures());
  return {
    advance: (more) => {
      bytes += more;
      moved += more;
      show();
    },
    moveTo: (to) => {
      bytes = to;
      show();
    },
    stop: () => bar.stop(),
  };
}
