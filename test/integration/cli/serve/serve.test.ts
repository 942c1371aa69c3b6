import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { builtProgram } from "../../../support/built-program.ts";
import { eventually } from "../../../support/eventually.ts";
import { type CertificatePair, GatewayFiles, selfSignedPair } from "../../../support/gateway-files.ts";
import { collect } from "../../../support/kubectl.ts";
import { serveGateway } from "../../../support/served-gateway.ts";
import { Sluice } from "../../../support/sluice.ts";

let tls: CertificatePair;
beforeAll(async () => {
  tls = await selfSignedPair("gateway");
});
let files: GatewayFiles;
beforeEach(() => {
  files = new GatewayFiles();
});
afterEach(() => files.remove());

/** Starts it with these sections, until it has said what `isReady` waits for; gives what it said. */
async function serve(
  configuration: object,
  isReady: (said: { stdout: string; stderr: string }) => boolean,
): Promise<{ stdout: string; stderr: string; exitCode: number | null }> {
  files.configure({ tls, configuration });
  const child = new Sluice({}).start(["serve", "--config", files.configurationFile]);
  const closed = once(child, "close");
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const said = () => ({ stdout: stdout(), stderr: stderr() });
  try {
    await eventually("it says so", () => child.exitCode !== null || isReady(said()));
    return { ...said(), exitCode: child.exitCode };
  } finally {
    child.kill("SIGTERM");
    await closed;
  }
}

describe("sluice serve", () => {
  it.each(["1", "2"])("with %s workers, says where it listens where the log does not", async (workers) => {
    const { stdout, stderr } = await serve({ logging: { level: "warn" }, workers: Number(workers) }, (said) =>
      said.stdout.includes("admin "),
    );
    expect(stdout).toMatch(/^apiServer https?:\/\/127\.0\.0\.1:[1-9]\d*$/m);
    expect(stdout).toMatch(/^admin http:\/\/127\.0\.0\.1:[1-9]\d*$/m);
    expect(stderr).toBe("");
  });

  it.each([
    ["kubelet", 1],
    ["kubelet", 2],
    ["ingress", 1],
    ["ingress", 2],
  ] as const)("serves %s alone, with %i workers: starts, reloads and stops", async (name, workers) => {
    const listener = {
      kubelet: { port: 0, runtime: { endpoint: "unix:///nowhere.sock", nodeName: "worker-1" } },
      ingress: { httpPort: 0, httpsPort: 0 },
    }[name];
    files.configure({ listeners: { apiServer: null, [name]: listener }, configuration: { workers } });
    const gateway = await serveGateway(files.configurationFile);
    try {
      const ofTraffic = { kubelet: "kubeletUrl", ingress: "ingress" }[name];
      const listening = Object.keys(gateway.ready).filter((field) => /Url$|^ingress$/.test(field));
      expect(listening.sort()).toEqual(["adminUrl", ofTraffic].sort());
      expect((await fetch(`${gateway.adminUrl}/readyz`)).status).toBe(200);
      gateway.child.kill("SIGHUP");
      await eventually("it has read its configuration again", () =>
        gateway.logLines().some(({ msg }) => msg === "the configuration was read again"),
      );
      gateway.child.kill("SIGTERM");
      expect(await gateway.exited).toEqual([0, null]);
      const serious = gateway.logLines().filter(({ level }) => level === "warn" || level === "error");
      expect(serious).toEqual([]);
    } finally {
      await gateway.stop();
    }
  });

  const hasNodeArguments = process.platform === "linux" && process.env.SLUICE_BINARY === undefined;
  it.runIf(hasNodeArguments)("leaves V8's flags as Node was given them", async () => {
    files.configure({ tls });
    const given = ["--max_semi_space_size=16", "--incremental-marking"];
    const gateway = await serveGateway(files.configurationFile, { nodeArguments: given });
    try {
      const command = readFileSync(`/proc/${gateway.child.pid}/cmdline`, "utf8").split("\0");
      expect(command.filter((word) => /semi.space|marking/.test(word))).toEqual(given);
    } finally {
      await gateway.stop();
    }
  });

  it.runIf(process.platform === "linux").each([
    ["", "glibc.malloc.tcache_count=65535"],
    ["glibc.malloc.mxfast=0", "glibc.malloc.mxfast=0:glibc.malloc.tcache_count=65535"],
    ["glibc.malloc.tcache_count=9", "glibc.malloc.tcache_count=9"],
  ])("lets glibc keep what sessions free, unless told otherwise (%o)", async (given, expected) => {
    files.configure({ tls, configuration: { workers: 2 } });
    const gateway = await serveGateway(files.configurationFile, { environment: { GLIBC_TUNABLES: given } });
    try {
      const { pid } = gateway.child;
      const [worker] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
      // glibc may end each setting in place.
      const environment = `\0${readFileSync(`/proc/${worker}/environ`, "utf8")}`.replaceAll("\0", ":");
      expect(environment).toContain(`:GLIBC_TUNABLES=${expected}:`);
    } finally {
      await gateway.stop();
    }
  });

  const taskset = spawnSync("taskset", ["-c", "0", "true"]).status === 0;
  const canRestart = hasNodeArguments && "execve" in process && process.env.LISTEN_FDS === undefined;
  it.runIf(taskset && canRestart)("gives V8 no threads that compete for a single processor", async () => {
    files.configure({ tls, configuration: { logging: { level: "info" } } });
    const words = ["-c", "0", process.execPath, builtProgram(), "serve", "--config", files.configurationFile];
    const gateway = spawn("taskset", words, { stdio: ["ignore", "ignore", "pipe"] });
    const closed = once(gateway, "close");
    const stderr = collect(gateway.stderr);
    try {
      await eventually("it is ready", () => stderr().includes("the gateway is ready"));
      const command = readFileSync(`/proc/${gateway.pid}/cmdline`, "utf8").split("\0");
      expect(command).toEqual(expect.arrayContaining(["--single-threaded-gc", "--v8-pool-size=1"]));
    } finally {
      gateway.kill();
      await closed;
    }
  });

  it("leaves that to the log where the log says it", async () => {
    const { stdout } = await serve({ logging: { level: "info" } }, (said) =>
      said.stderr.includes("the gateway is ready"),
    );
    expect(stdout).toBe("");
  });

  it.each([
    [false, "every request is answered with 401"],
    [true, "every request is system:anonymous"],
  ])("warns where no authentication is configured (anonymous: %s)", async (enabled, words) => {
    const { stderr } = await serve(
      { logging: { level: "warn" }, authentication: { anonymous: { enabled } } },
      (said) => said.stdout.includes("admin "),
    );
    expect(stderr).toContain(`no authentication is configured: ${words}`);
  });

  it("ends with 2 at the line of a field whose file is missing or does not fit", async () => {
    const keyFile = files.write("wrong.key", "no key");
    const listeners = { apiServer: { port: 0, tls: { certFile: "server.crt", keyFile } } };
    const authentication = { tokenAuthFile: "/nowhere/tokens.csv" };
    const { stderr, exitCode } = await serve({ listeners, authentication }, () => false);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(
      /gateway\.json:1:\d+: authentication\.tokenAuthFile: \S+: no such file or directory$/m,
    );
    expect(stderr).toMatch(/gateway\.json:1:\d+: listeners\.apiServer\.tls\.keyFile: /);
    expect(stderr).not.toContain("    at ");
  });

  it.each([
    ["of the configuration", 1, (file: string) => ({ authentication: { tokenAuthFile: file } })],
    ["of a worker", 2, (file: string) => ({ cluster: { manifests: [file] } })],
  ])("is ended at once by SIGTERM while a read %s hangs", async (_name, workers, sectionsOf) => {
    const { folder } = files;
    const fifo = path.join(folder, "fifo");
    execFileSync("mkfifo", [fifo]);
    // Its readers wait as long as this end is open.
    const writer = openSync(fifo, constants.O_RDWR);
    const sections = sectionsOf(`/proc/${process.pid}/fd/${writer}`);
    files.configure({ tls, configuration: { logging: { level: "silent" }, workers, ...sections } });
    const child = new Sluice({ TMPDIR: folder }).start(["serve", "--config", files.configurationFile]);
    const exited = once(child, "exit");
    const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
    const ownFolders = () => readdirSync(folder).filter((name) => name.startsWith("sluice-workers-"));
    const pid = child.pid as number;
    try {
      await eventually("it reads", () => [pid, ...childrenOf(pid)].some((each) => hasOpen(each, fifo)));
      const started = childrenOf(pid);
      expect(started).toHaveLength(workers === 1 ? 0 : workers);
      child.kill("SIGTERM");
      expect(await exited).toEqual([null, "SIGTERM"]);
      expect(stderr()).toContain("sluice serve: SIGTERM before the gateway was ready\n");
      expect(stdout()).toBe("");
      await eventually("its workers are gone", () => !started.some(isAlive));
      expect(ownFolders()).toEqual([]);
    } finally {
      child.kill("SIGKILL");
      closeSync(writer);
    }
  });
});

function hasOpen(pid: number, file: string): boolean {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).some((descriptor) => {
    try {
      return readlinkSync(path.join(folder, descriptor)) === file;
    } catch {
      return false;
    }
  });
}

function childrenOf(pid: number): number[] {
  const pids = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return pids === "" ? [] : pids.split(" ").map(Number);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

it("SIGHUP in the first moments does not end it", () => {
  // Arrives when the first module of the command is loaded.
  const hook = files.write(
    "hook.cjs",
    `const Module = require("node:module");
    const load = Module._load;
    Module._load = (name, ...rest) => {
      if (/gateway-flags/.test(name)) process.kill(process.pid, "SIGHUP");
      return load(name, ...rest);
    };`,
  );
  const args = [
    "--require",
    hook,
    builtProgram(),
    "serve",
    "--config",
    path.join(files.folder, "absent.yaml"),
  ];
  const { signal, status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stderr).toContain("absent.yaml");
  expect({ signal, status }).toEqual({ signal: null, status: 2 });
});
