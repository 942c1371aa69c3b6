import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { eventually } from "../eventually.ts";
import { collect } from "../kubectl.ts";
import { programOf } from "../real-parts.ts";

export const ACCESS_KEY = "sluice-tests";
export const SECRET_KEY = "a-secret-of-tests";

/** The header that states a body's hash; these requests have no body. */
const UNSIGNED = "x-amz-content-sha256: UNSIGNED-PAYLOAD";

/** A real S3 gateway on a folder of its own. For use inside `describeReal("versitygw", ...)`. */
export class VersitygwProcess {
  readonly port: number;
  readonly #folder: string;
  readonly #child: ChildProcess;

  private constructor(port: number, folder: string, child: ChildProcess) {
    this.port = port;
    this.#folder = folder;
    this.#child = child;
  }

  static async start(): Promise<VersitygwProcess> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    server.close();
    await once(server, "close");
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-versitygw-"));
    for (const name of ["data", "versions"]) mkdirSync(path.join(folder, name));
    const child = spawn(
      programOf("versitygw"),
      [
        ...["--port", `127.0.0.1:${port}`, "posix"],
        ...["--versioning-dir", path.join(folder, "versions"), path.join(folder, "data")],
      ],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, ROOT_ACCESS_KEY: ACCESS_KEY, ROOT_SECRET_KEY: SECRET_KEY },
      },
    );
    const log = collect(child.stderr);
    child.stdout.resume();
    const store = new VersitygwProcess(port, folder, child);
    await eventually("versitygw answers", () => {
      if (child.exitCode !== null) throw new Error(`versitygw ended: ${log().slice(-1_000)}`);
      return store.curl("GET", "/").status === 200;
    });
    return store;
  }

  /** Sends a request with curl, which signs it. */
  curl(method: string, target: string, headers: readonly string[] = []): { status: number; text: string } {
    const answer = execFileSync(
      "curl",
      [
        ...["--silent", "--request", method, "--max-time", "20", "--write-out", "\n%{http_code}"],
        ...["--aws-sigv4", "aws:amz:us-east-1:s3", "--user", `${ACCESS_KEY}:${SECRET_KEY}`],
        ...[UNSIGNED, ...headers].flatMap((header) => ["--header", header]),
        `http://127.0.0.1:${this.port}${target}`,
      ],
      { maxBuffer: 256 * 1024 * 1024, encoding: "latin1" },
    );
    const end = answer.lastIndexOf("\n");
    return { status: Number(answer.slice(end + 1)), text: answer.slice(0, end) };
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      this.#child.kill("SIGKILL");
      await once(this.#child, "exit");
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
