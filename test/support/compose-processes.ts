import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parse } from "yaml";
import { builtProgram } from "./built-program.ts";
import { eventually } from "./eventually.ts";

const root = path.resolve(import.meta.dirname, "../..");

export interface ComposeService {
  readonly image: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly configs?: readonly { readonly source: string; readonly target: string }[];
  readonly ports?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
}

export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly configs: Readonly<Record<string, { readonly file: string }>>;
}

export function readComposeFile(): ComposeFile {
  return parse(readFileSync(path.join(root, "docker-compose.yml"), "utf8"), { merge: true }) as ComposeFile;
}

interface Running {
  readonly child: ChildProcess;
  readonly output: () => string;
}

/**
 * Runs the services of docker-compose.yml as processes of this machine: each has a loopback address
 * and a folder instead of its container's, and the entry point from the Dockerfile.
 */
export class ComposeProcesses {
  readonly #file = readComposeFile();
  readonly #folder = mkdtempSync(path.join(tmpdir(), "sluice-compose-"));
  /** A network for this run alone, because the ports are those of the file. */
  readonly #network = `127.${1 + Math.floor(Math.random() * 250)}.${1 + Math.floor(Math.random() * 250)}`;
  readonly #running = new Map<string, Running>();

  addressOf(service: string): string {
    const index = Object.keys(this.#file.services).indexOf(service);
    if (index === -1) throw new Error(`docker-compose.yml has no service ${service}`);
    return `${this.#network}.${index + 1}`;
  }

  /** The path of a file on the volume that the services share. */
  volumeFile(name: string): string {
    return path.join(this.#folder, "var/lib/sluice", name);
  }

  /** Starts a service as soon as its dependencies meet the file's conditions. */
  async start(name: string): Promise<void> {
    const service = this.#file.services[name] as ComposeService;
    for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
      if (!this.#running.has(other)) await this.start(other);
      await this.#meets(other, condition);
    }
    mkdirSync(path.join(this.#folder, "var/lib/sluice"), { recursive: true });
    for (const { source, target } of service.configs ?? []) this.#mount(name, source, target);
    const [program = "", ...args] = this.#commandOf(name, service);
    // A file, because nginx opens /dev/stderr, which fails for Node's pipes: they are sockets.
    const log = path.join(this.#folder, `${name}.log`);
    const file = openSync(log, "a");
    const child = spawn(program, args, { stdio: ["ignore", file, file] });
    closeSync(file);
    this.#running.set(name, { child, output: () => readFileSync(log, "utf8") });
  }

  /** What a service has printed so far. */
  outputOf(name: string): string {
    return this.#of(name).output();
  }

  /** Resolves when the service's own health check succeeds. Rejects with the service's output. */
  async healthy(name: string): Promise<void> {
    const [kind, program = "", ...args] = this.#file.services[name]?.healthcheck?.test ?? [];
    if (kind !== "CMD") throw new Error(`the health check of ${name} is no command`);
    await eventually(
      `${name} is healthy`,
      async () => {
        const { exitCode, signalCode } = this.#of(name).child;
        if (exitCode !== null || signalCode !== null)
          throw new Error(`${name} ended: ${this.#of(name).output()}`);
        const check = spawn(
          this.#programOf(program),
          args.map((text) => this.#local(name, text)),
          { stdio: "ignore" },
        );
        return (await once(check, "exit"))[0] === 0;
      },
      { timeoutMs: 60_000, intervalMs: 250 },
    );
  }

  async stop(): Promise<void> {
    for (const { child } of [...this.#running.values()].reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exited = once(child, "exit");
      child.kill("SIGTERM");
      await exited;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Replaces containers' addresses, names and paths with those of this machine. */
  #local(name: string, text: string): string {
    const own = this.addressOf(name);
    let local = text
      .replaceAll(/\b0\.0\.0\.0\b|\b127\.0\.0\.1\b/g, own)
      .replaceAll(
        /(?<![\w/.])\/(etc\/(?:sluice|nginx)|var\/lib\/sluice|app|tmp)(?=\/|;|$|")/gm,
        `${this.#folder}/$1`,
      );
    for (const other of Object.keys(this.#file.services)) {
      local = local.replaceAll(
        new RegExp(`(?<=server |address: )${other}(?=[: ])`, "g"),
        this.addressOf(other),
      );
    }
    return local;
  }

  #mount(name: string, source: string, target: string): void {
    const from = this.#file.configs[source]?.file;
    if (from === undefined) throw new Error(`docker-compose.yml has no config ${source}`);
    const to = path.join(this.#folder, target);
    mkdirSync(path.dirname(to), { recursive: true });
    if (target.startsWith("/app/")) {
      // Copied, because a module finds the program beside itself.
      cpSync(path.join(root, from), to);
      builtProgram();
      for (const part of ["dist", "node_modules", "package.json"]) {
        symlinkSync(path.join(root, part), path.join(this.#folder, "app", part));
      }
      return;
    }
    const text = this.#local(name, readFileSync(path.join(root, from), "utf8"));
    const listening = text.replace(/^ +listen (?=\d)/gm, `listen ${this.addressOf(name)}:`);
    // A gateway dials no loopback addresses unless it is allowed to; containers have other
    // addresses.
    const more = source === "gateway" ? "\nkubelet: { allowedAddresses: [127.0.0.0/8] }\n" : "";
    writeFileSync(to, listening + more);
  }

  #commandOf(name: string, { image, entrypoint, command = [] }: ComposeService): string[] {
    const [program = "", ...args] = [...(entrypoint ?? entrypointOf(image)), ...command];
    const local = args.map((text) => this.#local(name, text));
    if (image !== "sluice") {
      mkdirSync(path.join(this.#folder, "tmp"), { recursive: true });
      return [program, ...local, "-c", path.join(this.#folder, "etc/nginx/nginx.conf")];
    }
    const main = path.join(this.#folder, "app/dist/src/main.js");
    return [this.#programOf(program), ...local.map((text) => (text === main ? builtProgram() : text))];
  }

  #programOf(program: string): string {
    return program === "node" ? process.execPath : program;
  }

  async #meets(name: string, condition: string): Promise<void> {
    const { child, output } = this.#of(name);
    if (condition === "service_healthy") return this.healthy(name);
    if (condition === "service_started") return;
    if (condition !== "service_completed_successfully") throw new Error(`${condition} is unknown`);
    if (child.exitCode === null) await once(child, "exit");
    if (child.exitCode !== 0) throw new Error(`${name} failed: ${output()}`);
  }

  #of(name: string): Running {
    const running = this.#running.get(name);
    if (running === undefined) throw new Error(`${name} was not started`);
    return running;
  }
}

/**
 * The Dockerfile's command for the stage that the composition builds; nginx' own image runs `nginx
 * -g "daemon off;"`.
 */
function entrypointOf(image: string): string[] {
  if (image.startsWith("nginx:")) return ["nginx", "-g", "daemon off;"];
  const dockerfile = readFileSync(path.join(root, "Dockerfile"), "utf8");
  const [, entrypoint = ""] = /^FROM \S+ AS demo$[\s\S]*?^ENTRYPOINT (\[.*\])$/m.exec(dockerfile) ?? [];
  return JSON.parse(entrypoint) as string[];
}
