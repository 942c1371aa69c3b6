import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { eventually } from "../eventually.ts";
import { freePorts } from "../http/loopback.ts";
import { programOf } from "../real-parts.ts";

/** The address where a replica listens, or will listen. */
export interface Endpoint {
  readonly api: number;
  readonly admin: number;
  readonly door: number;
}

/**
 * Three entry points: the API for clients that keep their connection, the API for clients whose
 * connections are cut in the end, and the front door.
 */
const WAYS = ["api", "movingApi", "door"] as const;

/**
 * HAProxy in TCP mode. It checks `/readyz` of each replica every 100 ms, and sends new connections
 * to those that are ready.
 */
export class TcpBalancer {
  readonly ports: Readonly<Record<(typeof WAYS)[number], number>>;
  readonly #folder: string;
  readonly #child: ChildProcess;

  private constructor(folder: string, child: ChildProcess, ports: readonly number[]) {
    this.#folder = folder;
    this.#child = child;
    const [api = 0, movingApi = 0, door = 0] = ports;
    this.ports = { api, movingApi, door };
  }

  static async start(endpoints: readonly Endpoint[]): Promise<TcpBalancer> {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-balancer-"));
    const ports = await freePorts(WAYS.length);
    const file = path.join(folder, "haproxy.cfg");
    writeFileSync(file, configurationOf(path.join(folder, "control"), ports, endpoints));
    const program = programOf("haproxy");
    // Throws, with the warning, if HAProxy would warn about its configuration.
    execFileSync(program, ["-c", "-dW", "-f", file], { stdio: "pipe" });
    // Quiet, because it would print each replica that comes or goes, which tests ask for
    // separately.
    const child = spawn(program, ["-q", "-db", "-f", file], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    return new TcpBalancer(folder, child, ports);
  }

  /**
   * Waits until exactly the replicas with these indexes get new connections, at all entry points.
   */
  async sendsTo(...indexes: readonly number[]): Promise<void> {
    const expected = WAYS.flatMap((way) => indexes.map((index) => `${way}/r${index}`)).sort();
    let seen: readonly string[] = [];
    await eventually(
      () => `the balancer sends to ${expected.join(" ")}, not to ${seen.join(" ")}`,
      async () => {
        seen = await this.#ready();
        return seen.join() === expected.join();
      },
      { timeoutMs: 30_000 },
    );
  }

  /** Cuts moving clients' connections to a replica, as balancers do some time after it has left. */
  async cut(index: number): Promise<void> {
    await this.#command(`shutdown sessions server movingApi/r${index}`);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      this.#child.kill("SIGKILL");
      await once(this.#child, "exit");
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #ready(): Promise<readonly string[]> {
    const rows = (await this.#command("show stat")).split("\n").map((line) => line.split(","));
    const status = rows[0]?.indexOf("status") ?? -1;
    // "UP 1/2" means that it is about to be down.
    return rows
      .filter(([, server = "", ...rest]) => /^r\d+$/.test(server) && rest[status - 2] === "UP")
      .map(([way, server]) => `${way}/${server}`)
      .sort();
  }

  async #command(line: string): Promise<string> {
    const socket = connect(path.join(this.#folder, "control"));
    socket.write(`${line}\n`);
    return await text(socket);
  }
}

function configurationOf(control: string, ports: readonly number[], endpoints: readonly Endpoint[]): string {
  const sections = WAYS.map((way, index) => {
    const servers = endpoints.map(
      (endpoint, at) =>
        `  server r${at} 127.0.0.1:${way === "door" ? endpoint.door : endpoint.api} check port ${endpoint.admin}`,
    );
    return [
      `listen ${way}`,
      `  bind 127.0.0.1:${ports[index]}`,
      "  option httpchk GET /readyz",
      "  default-server inter 100ms fastinter 100ms downinter 100ms fall 1 rise 1",
      ...servers,
    ].join("\n");
  });
  return `global
  stats socket ${control} level admin
defaults
  mode tcp
  balance roundrobin
  retries 3
  option redispatch 1
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout check 2s
${sections.join("\n")}
`;
}
