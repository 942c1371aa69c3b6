import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { eventually } from "./eventually.ts";
import { freePorts } from "./http/loopback.ts";
import { collect } from "./kubectl.ts";
import { programOf } from "./real-parts.ts";
import type { TestCertificate } from "./test-certificates.ts";

export interface RedisOptions {
  readonly password?: string;
  /** The certificate for TLS, which is then the only protocol. */
  readonly tls?: TestCertificate;
  /** An address besides loopback, for pods. */
  readonly address?: string;
}

/** A real Redis on loopback, without persistence. For use inside `describeReal("redis", ...)`. */
export class RedisProcess {
  readonly url: string;
  readonly port: number;
  readonly #folder = mkdtempSync(path.join(tmpdir(), "sluice-redis-"));
  readonly #arguments: readonly string[];
  #child: ChildProcess | undefined;

  private constructor(port: number, { password, tls, address }: RedisOptions) {
    this.port = port;
    this.url = `${tls === undefined ? "redis" : "rediss"}://127.0.0.1:${port}`;
    this.#arguments = [
      ...["--bind", "127.0.0.1", ...(address === undefined ? [] : [address])],
      ...["--save", "", "--dir", this.#folder],
      ...(password === undefined ? [] : ["--requirepass", password]),
      ...(tls === undefined ? ["--port", String(port)] : ["--port", "0", "--tls-port", String(port)]),
      ...(tls === undefined ? [] : ["--tls-cert-file", this.#write("tls.crt", tls.cert)]),
      ...(tls === undefined ? [] : ["--tls-key-file", this.#write("tls.key", tls.key)]),
      ...(tls === undefined ? [] : ["--tls-auth-clients", "no"]),
    ];
  }

  static async start(options: RedisOptions = {}): Promise<RedisProcess> {
    const [port = 0] = await freePorts(1);
    const redis = new RedisProcess(port, options);
    await redis.start();
    return redis;
  }

  #write(name: string, text: string): string {
    const file = path.join(this.#folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  }

  /** Starts it without data, on its earlier port. */
  async start(): Promise<void> {
    const child = spawn(programOf("redis"), [...this.#arguments], {
      argv0: "redis-server",
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#child = child;
    const log = collect(child.stdout);
    await eventually("Redis accepts connections", () => {
      if (child.exitCode !== null) throw new Error(`Redis ended: ${log().slice(-1_000)}`);
      return log().includes("Ready to accept connections");
    });
  }

  /** SIGSTOP suspends it with its connections until SIGCONT. */
  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.#child?.kill(name);
  }

  /** Kills it: its connections are reset. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** Runs a command with Redis' own command-line client. */
  cli(...command: readonly string[]): string {
    const ran = spawnSync("redis-cli", ["-p", String(this.port), ...command], {
      encoding: "utf8",
      timeout: 10_000,
    });
    return ran.stdout.trim();
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Redis cannot bind a port of the system's choice. */
