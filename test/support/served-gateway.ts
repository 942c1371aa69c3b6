import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { builtProgram } from "./built-program.ts";
import { eventually } from "./eventually.ts";
import { collect } from "./kubectl.ts";

export interface ServedGateway {
  readonly child: ChildProcess;
  /** `127.0.0.1:port` of the API listener. */
  readonly authority: string;
  readonly adminUrl: string;
  /** JSON lines on stderr so far. */
  log(): string;
  /** Resolves to exit code and signal when the process has ended. */
  readonly exited: Promise<[code: number | null, signal: NodeJS.Signals | null]>;
}

/** `sluice serve` as a process, until its log says that it is ready. */
export async function serveGateway(configurationFile: string): Promise<ServedGateway> {
  const child = spawn(process.execPath, [builtProgram(), "serve", "--config", configurationFile], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const log = collect(child.stderr);
  const exited = once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  try {
    const ready = await eventually(
      "the gateway says where it listens",
      () => {
        if (child.exitCode !== null)
          throw new Error(`it ended with ${child.exitCode}: ${log().slice(-2_000)}`);
        return /"apiServerUrl":"https?:\/\/([^"]+)","adminUrl":"([^"]+)"/.exec(log()) ?? undefined;
      },
      { timeoutMs: 60_000 },
    );
    return { child, authority: ready[1] ?? "", adminUrl: ready[2] ?? "", log, exited };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}
