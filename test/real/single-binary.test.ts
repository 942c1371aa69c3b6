import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { eventually } from "../support/eventually.ts";
import { GatewayFiles } from "../support/gateway-files.ts";
import { listen } from "../support/http/loopback.ts";
import { serveGateway } from "../support/served-gateway.ts";

const root = path.resolve(import.meta.dirname, "../..");
const { SLUICE_BINARY: given } = process.env;
const canBuild = Number.parseInt(process.versions.node, 10) >= 24 && spawnSync("strip", ["-V"]).status === 0;

describe.skipIf(given === undefined && !canBuild)("the single binary (needs Node.js 24 and strip)", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-single-"));
  const binary = given ?? path.join(folder, "sluice");
  let demo: RunningDemo;
  beforeAll(async () => {
    if (given === undefined) {
      const arguments_ = [path.join(root, "scripts/build-binary.mjs"), binary];
      const { status, stderr } = spawnSync(process.execPath, arguments_, { encoding: "utf8" });
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    }
    // What starts programs for tests reads it.
    process.env.SLUICE_BINARY = binary;
    demo = await startDemo();
  }, 300_000);
  afterAll(async () => {
    if (given === undefined) delete process.env.SLUICE_BINARY;
    await demo?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs it where no Node.js is found, under another name if one is given. */
  const run = (args: readonly string[], name = "sluice") => {
    const program = path.join(folder, `as-${name}`, name);
    if (name === "sluice") return result(binary, args);
    execFileSync("mkdir", ["-p", path.dirname(program)]);
    symlinkSync(binary, program);
    return result(program, args);
  };
  const result = (program: string, args: readonly string[]) => {
    const { status, stdout, stderr } = spawnSync(program, args, {
      encoding: "utf8",
      env: { PATH: "/usr/bin:/bin", HOME: folder, KUBECONFIG: demo.kubeconfig },
    });
    return { status, stdout, stderr };
  };

  it("has the version, the licences of what is in it, and less than 130 MiB", () => {
    const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
      version: string;
    };
    expect(run(["--version"]).stdout).toMatch(`sluice ${version}, Node v`);
    expect(statSync(binary).size).toBeLessThan(130 * 2 ** 20);
    const licences = readFileSync(`${binary}.LICENSES`, "utf8");
    for (const name of ["yaml", "pino", "@grpc/grpc-js", "jose", "uplot"])
      expect(licences).toMatch(new RegExp(`^${name} \\d`, "m"));
  });

  it("runs a command, and gives its exit code", () => {
    expect(run(["exec", "web", "--", "sh", "-c", "echo $0; exit 7", "hello"])).toEqual({
      status: 7,
      stdout: "hello\n",
      stderr: "command terminated with exit code 7\n",
    });
  });

  it("is kubectl's plugin, and completes for it, by its name", () => {
    expect(run(["exec", "--help"], "kubectl-sluice").stdout).toContain("  kubectl sluice exec (POD");
    expect(run(["exec", "w"], "kubectl_complete-sluice").stdout).toBe("web\nweb-ws\n:4\n");
  });

  it("starts processes of its own, and has the plots of reports and the manifests", () => {
    const load = run(["load", "exec", "web", "--processes", "2", "--duration", "1s", "--html", "-"]);
    expect([load.status, load.stderr]).toEqual([0, expect.stringContaining("no errors")]);
    expect(load.stdout).toContain("uPlot");
    expect(run(["install", "--dry-run"]).stdout).toContain("kind: Deployment");
  });

  it("serves with workers, and reads long manifests in a thread", async () => {
    const annotations = { long: "x".repeat(100_000) };
    const files = new GatewayFiles({
      manifests: [{ apiVersion: "v1", kind: "Namespace", metadata: { name: "long", annotations } }],
      configuration: { workers: 2, logging: { level: "info" } },
    });
    try {
      const gateway = await serveGateway(files.configurationFile);
      expect(await fetch(`${gateway.adminUrl}/readyz`).then(({ status }) => status)).toBe(200);
      const cluster = path.join(files.folder, "cluster.json");
      writeFileSync(cluster, readFileSync(cluster, "utf8").replace('"x', '"y'));
      gateway.child.kill("SIGHUP");
      await eventually("manifests are read again", () => gateway.log().includes("manifests reloaded"));
      await gateway.stop();
      expect(gateway.child.exitCode).toBe(0);
      expect(gateway.logLines().filter(({ level }) => level === "error")).toEqual([]);
      expect(gateway.log()).not.toContain("Warning");
    } finally {
      files.remove();
    }
  }, 60_000);

  it("takes the sockets of systemd, and is replaced at SIGUSR2 by what its link names then", async () => {
    const [current, next] = [path.join(folder, "current"), path.join(folder, "next")];
    symlinkSync(binary, current);
    copyFileSync(binary, next);
    const socket = createServer();
    const port = await listen(socket);
    const { fd } = (socket as unknown as { _handle: { fd: number } })._handle;
    const files = new GatewayFiles({});
    process.env.SLUICE_BINARY = current;
    const environment = { LISTEN_FDS: "1", LISTEN_FDNAMES: "apiServer" };
    const gateway = await serveGateway(files.configurationFile, {
      environment,
      sockets: { descriptors: [fd] },
    });
    // Otherwise we accept, too.
    socket.close();
    const ready = () => gateway.logLines().filter(({ msg }) => msg === "the gateway is ready");
    const program = (pid: unknown): string => readlinkSync(`/proc/${pid}/exe`);
    try {
      const apiServerUrl = `http://127.0.0.1:${port}`;
      expect(ready()).toMatchObject([{ apiServerUrl, pid: gateway.child.pid }]);
      expect(program(gateway.child.pid)).toBe(binary);
      rmSync(current);
      symlinkSync(next, current);
      gateway.child.kill("SIGUSR2");
      expect(await gateway.exited).toEqual([0, null]);
      const [, second] = ready();
      expect(second).toMatchObject({ apiServerUrl });
      expect(program(second?.pid)).toBe(next);
      expect((await fetch(`${apiServerUrl}/livez`)).status).toBe(200);
    } finally {
      process.env.SLUICE_BINARY = binary;
      for (const { pid } of ready().slice(1)) process.kill(pid as number, "SIGTERM");
      await gateway.stop();
      files.remove();
    }
  }, 120_000);
});
