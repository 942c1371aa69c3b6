import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { GatewayFiles, type GatewayFilesOptions } from "./gateway-files.ts";
import { parseMetrics } from "./taken-path.ts";

/** Lets heldBytes ask for a collection. */
const COLLECT_ON_SIGNAL = "data:text/javascript,process.on('SIGUSR2',()=>gc())";
/** Buffers are freed by the collection after the one that finds them unused, and a signal may be late. */
const COLLECTIONS = 8;

const root = path.resolve(import.meta.dirname, "../..");

export interface GatewayProcess {
  readonly apiServerUrl: string;
  readonly token: string;
  /** Memory of the process that is in RAM, in bytes (VmRSS): garbage and what the allocator keeps for later included. */
  residentBytes(): number;
  /** What JavaScript and its buffers hold after a garbage collection, in bytes. */
  heldBytes(): Promise<number>;
  /** A page of the admin listener. */
  admin(page: string): Promise<string>;
  stop(): Promise<void>;
}

/** `sluice serve` as a process of its own, compiled from the sources as they are (types unchecked), into a folder that nobody else uses. */
export async function startGatewayProcess(options: GatewayFilesOptions): Promise<GatewayProcess> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-build-"));
  const files = new GatewayFiles();
  let child: ChildProcess | undefined;
  const remove = (): void => {
    child?.kill("SIGKILL");
    files.remove();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    compileInto(folder);
    await files.write(options);
    const configuration = JSON.parse(readFileSync(files.configurationFile, "utf8"));
    configuration.logging.level = "info";
    configuration.timeouts = { shutdownGracePeriod: "0s", lingerIdle: "1s" };
    writeFileSync(files.configurationFile, JSON.stringify(configuration));

    const program = path.join(folder, "src/main.js");
    const started = spawn(
      process.execPath,
      ["--expose-gc", "--import", COLLECT_ON_SIGNAL, program, "serve", "--config", files.configurationFile],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    child = started;
    const { apiServerUrl, adminUrl } = await readiness(started);
    const admin = async (page: string) => (await fetch(new URL(page, adminUrl))).text();
    return {
      apiServerUrl,
      token: files.token,

      residentBytes: () => residentBytesOf(started.pid as number),
      async heldBytes() {
        let least = Number.POSITIVE_INFINITY;
        for (let collection = 0; collection < COLLECTIONS; collection++) {
          started.kill("SIGUSR2");
          const samples = parseMetrics(await admin("/metrics"));
          const heap = samples.get("nodejs_heap_size_used_bytes") ?? Number.NaN;
          const external = samples.get("nodejs_external_memory_bytes") ?? Number.NaN;
          least = Math.min(least, heap + external);
        }
        return least;
      },
      admin,
      async stop() {
        if (started.exitCode === null) {
          const exited = once(started, "exit");
          started.kill("SIGTERM");
          await exited;
        }
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}

function compileInto(folder: string): void {
  execFileSync(
    path.join(root, "node_modules/.bin/tsc"),
    ["-p", path.join(root, "tsconfig.build.json"), "--outDir", folder, "--declaration", "false", "--noCheck"],
    { stdio: "pipe" },
  );
  cpSync(path.join(root, "package.json"), path.join(folder, "package.json"));
  symlinkSync(path.join(root, "node_modules"), path.join(folder, "node_modules"));
}

/** Where the listeners are, from the log; the rest of the log is read and dropped. */
async function readiness(child: ChildProcess): Promise<{ apiServerUrl: string; adminUrl: string }> {
  const lines: string[] = [];
  return new Promise((resolve, reject) => {
    child.once("exit", () => reject(new Error(`the gateway ended: ${lines.join("\n")}`)));
    createInterface({ input: child.stderr as NonNullable<ChildProcess["stderr"]> }).on("line", (line) => {
      if (lines.push(line) > 20) lines.shift();
      if (line.includes('"the gateway is ready"')) resolve(JSON.parse(line));
    });
  });
}

function residentBytesOf(pid: number): number {
  const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kibibytes) * 1024;
}
