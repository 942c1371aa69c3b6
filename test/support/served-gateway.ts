import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { sluiceCommand } from "./built-program.ts";
import { eventually } from "./eventually.ts";
import { collect } from "./kubectl.ts";

/** How long a gateway may take to exit after SIGTERM. Past it, it is killed. */
const STOP_MS = 30_000;

/** The fields of the log line that reports the listeners' addresses. */
export interface ReadyLine {
  readonly apiServerUrl: string;
  readonly adminUrl: string;
  readonly kubeletUrl?: string;
  readonly peersUrl?: string;
  readonly ingress?: { readonly httpUrl: string; readonly httpsUrl: string };
  readonly workers?: number;
}

export interface ServedGateway {
  readonly child: ChildProcess;
  readonly ready: ReadyLine;
  /** `127.0.0.1:port` of the API listener. */
  readonly authority: string;
  readonly adminUrl: string;
  /** stderr so far, as JSON lines. */
  log(): string;
  logLines(): readonly LogLine[];
  /** Resolves with exit code and signal when the process has ended. */
  readonly exited: Promise<[code: number | null, signal: NodeJS.Signals | null]>;
  /** Sends SIGTERM and waits for the exit. Rejects if the process had to be killed. */
  stop(): Promise<void>;
}

export interface LogLine extends Readonly<Record<string, unknown>> {
  readonly level: string;
  readonly msg: string;
}

export interface ServeOptions {
  /** Node's own arguments, before the program. */
  readonly nodeArguments?: readonly string[];
  /** A module that serves, run by Node instead of the program that users run. */
  readonly program?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** The working directory; by default ours. */
  readonly folder?: string;
  /**
   * Listening sockets from descriptor 3 on, as systemd passes them; for this process unless `owner`
   * is another.
   */
  readonly sockets?: { readonly descriptors: readonly number[]; readonly owner?: number | undefined };
}

/**
 * Starts `sluice serve` as a process, and waits until its log says that it is ready. The only place
 * where tests start one that serves.
 */
export async function serveGateway(
  configurationFile: string,
  { nodeArguments = [], program: module, environment = {}, folder, sockets }: ServeOptions = {},
): Promise<ServedGateway> {
  const [user, userArguments] = sluiceCommand("serve", "--config", configurationFile);
  const program = module === undefined ? user : process.execPath;
  const args = module === undefined ? userArguments : [module, ...userArguments.slice(1)];
  const own = [...nodeArguments, ...args];
  const script = `LISTEN_PID=${sockets?.owner ?? "$$"} exec "$@"`;
  const [file, fileArguments] =
    sockets === undefined ? [program, own] : ["/bin/sh", ["-c", script, "sh", program, ...own]];
  const child = spawn(file, fileArguments, {
    stdio: ["ignore", "ignore", "pipe", ...(sockets?.descriptors ?? [])],
    env: { ...process.env, ...environment },
    cwd: folder,
  });
  const log = collect(child.stderr as Readable);
  const logLines = () =>
    log()
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
      .map((line) => JSON.parse(line) as LogLine);
  const exited = once(child, "exit") as ServedGateway["exited"];
  try {
    const ready = await eventually(
      "the gateway says where it listens",
      () => {
        if (child.exitCode !== null)
          throw new Error(`it ended with ${child.exitCode}: ${log().slice(-2_000)}`);
        return logLines().find(({ msg }) => msg === "the gateway is ready") as ReadyLine | undefined;
      },
      { timeoutMs: 60_000 },
    );
    return {
      child,
      ready,
      authority: ready.apiServerUrl ? new URL(ready.apiServerUrl).host : "",
      adminUrl: ready.adminUrl,
      log,
      logLines,
      exited,
      stop: async () => {
        let isLate = false;
        const timer = setTimeout(() => {
          isLate = true;
          child.kill("SIGKILL");
        }, STOP_MS);
        child.kill("SIGTERM");
        await exited;
        clearTimeout(timer);
        if (isLate) throw new Error(`the gateway ran ${STOP_MS} ms after SIGTERM:\n${log().slice(-2_000)}`);
      },
    };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

/**
 * Node's arguments for a process whose wall clock is off by this much; monotonic time is unchanged.
 */
export function shiftedClock(byMs: number): readonly string[] {
  const program = `
    const { Date: Right } = globalThis;
    globalThis.Date = class Date extends Right {
      constructor(...values) { if (values.length === 0) super(Right.now() + (${byMs})); else super(...values); }
      static now() { return Right.now() + (${byMs}); }
    };`;
  return byMs === 0 ? [] : ["--import", `data:text/javascript,${encodeURIComponent(program)}`];
}
