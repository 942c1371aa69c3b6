import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { freePorts } from "../support/http/loopback.ts";
import { writeEvidence } from "../support/in-cluster-evidence.ts";
import { containerds, describeReal } from "../support/real-parts.ts";
import { configOfDockerfile, sluiceArchive, sluiceLayer } from "./containerd/sluice-image.ts";
import { importImages, type RunningContainerd, startContainerd } from "./containerd/start-containerd.ts";

const IMAGE = "localhost/sluice:test";
/** By gzip at its default level, as images are published unless another compression is asked for. */
const MAX_COMPRESSED_BYTES = 45_000_000;

it("is built on images that are pinned by their digests", () => {
  const text = readFileSync(new URL("../../Dockerfile", import.meta.url), "utf8");
  const [, pinned] = /^ARG NODE_IMAGE=(\S+)$/m.exec(text) ?? [];
  expect(pinned).toMatch(/^node:[\d.]+-bookworm-slim@sha256:[0-9a-f]{64}$/);
  const stages = [...text.matchAll(/^FROM (\S+)(?: AS (\S+))?$/gm)];
  const known = new Set(["scratch", `\${NODE_IMAGE}`, ...stages.map(([, , name]) => name)]);
  expect(stages.map(([, from]) => from).filter((from) => !known.has(from))).toEqual([]);
  // Node's own index has these; nothing here names one of them.
  expect(text).not.toMatch(/^(?!#).*(amd64|x86_64|arm64|aarch64)/m);
});

describeReal("containerd", "the image for clusters", () => {
  let folder: string;
  let layer: Buffer;
  let containerd: RunningContainerd;
  const [binaries] = containerds();

  const ctr = (...arguments_: readonly string[]) => [
    "--address",
    containerd.socket,
    "--namespace",
    "k8s.io",
    ...arguments_,
  ];
  const program = path.join(binaries?.binDir ?? "", "ctr");

  beforeAll(async () => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-image-"));
    layer = sluiceLayer();
    if (binaries === undefined) throw new Error("there is no containerd");
    containerd = await startContainerd(binaries);
    await importImages(binaries, containerd.socket, sluiceArchive(layer, IMAGE));
  }, 240_000);
  afterAll(async () => {
    await containerd?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is small", async () => {
    const compressed = await promisify(gzip)(layer);
    expect(compressed.length).toBeLessThan(MAX_COMPRESSED_BYTES);
    const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
    const sizes = `${megabytes(compressed.length)} compressed (gzip), ${megabytes(layer.length)} unpacked`;
    const node = `Node.js ${process.versions.node} and Sluice for ${process.platform}/${process.arch}, one layer`;
    writeEvidence("image", `${sizes}: ${node}. No shell, no package manager, no compiler.`);
  });

  it("has no shell, and nothing that anybody but root may change", () => {
    const names = execFileSync("tar", ["--list", "--verbose", "--numeric-owner"], {
      input: layer,
      encoding: "utf8",
      maxBuffer: 2 ** 26,
    }).split("\n");
    expect(names.filter((line) => /\/(sh|bash|dash|busybox|apt|dpkg|npm)$/.test(line))).toEqual([]);
    const writable = names.filter((line) => /^.{8}w/.test(line) || (line !== "" && !/^\S+ 0\/0 /.test(line)));
    expect(writable.map((line) => line.split(/\s+/).at(-1))).toEqual(["./tmp/", "./var/lib/sluice/"]);
  });

  it.each([
    ["1"],
    ["2"],
    ["its own command"],
  ])("serves with %s processes, as an unprivileged user on a read-only root, until SIGTERM", async (how) => {
    const isOwn = how === "its own command";
    const workers = isOwn ? `${availableParallelism()}` : how;
    const [adminPort = 0] = await freePorts(1);
    const configuration = path.join(folder, `etc-${isOwn}-${workers}`);
    mkdirSync(configuration);
    writeFileSync(
      path.join(configuration, "config.yaml"),
      JSON.stringify({
        apiVersion: "sluice.dev/v1alpha1",
        kind: "GatewayConfiguration",
        listeners: { apiServer: { port: 0 }, admin: { port: adminPort } },
        timeouts: { shutdownGracePeriod: "1s" },
        // Optional packages, which a process loads as it starts. Nothing listens there.
        quotaStore: { url: "redis://127.0.0.1:9" },
        tracing: { endpoint: "http://127.0.0.1:9/v1/traces" },
      }),
    );
    const temporary = path.join(folder, `tmp-${isOwn}-${workers}`);
    mkdirSync(temporary);
    chmodSync(temporary, 0o1777);
    const mount = (src: string, dst: string, options: string) => [
      "--mount",
      `type=bind,src=${src},dst=${dst},options=rbind:${options}`,
    ];
    const { Entrypoint: entry } = configOfDockerfile();
    const command = [...entry, "serve", "--config", "/etc/sluice/config.yaml", "--workers", workers];
    const name = `sluice-${isOwn ? "own" : workers}`;
    const child = spawn(
      program,
      ctr(
        ...["run", "--rm", "--net-host", "--read-only"],
        ...mount(configuration, "/etc/sluice", "ro"),
        ...mount(temporary, "/tmp", "rw"),
        ...[IMAGE, name, ...(isOwn ? [] : command)],
      ),
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (part: Buffer) => {
        output += part;
      });
    }
    const exited = once(child, "exit");
    try {
      await eventually(
        () => `the gateway is ready: ${output}`,
        async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok,
        { timeoutMs: 60_000 },
      );
      const processes = processesIn(name);
      expect(processes.length).toBe(workers === "1" ? 1 : Number(workers) + 1);
      for (const status of processes) {
        expect(status).toMatch(/^Uid:\t1000\t1000\t1000\t1000$/m);
        expect(status).toMatch(/^CapEff:\t0+$/m);
      }
    } finally {
      spawnSync(program, ctr("tasks", "kill", "--signal", "SIGTERM", name));
    }
    expect(await exited).toEqual([0, null]);
  });
});

/** `/proc/PID/status` of the processes whose cgroup is the container's. */
function processesIn(container: string): readonly string[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const isInside = readFileSync(`/proc/${name}/cgroup`, "utf8").includes(`/${container}`);
      return isInside ? readFileSync(`/proc/${name}/status`, "utf8") : [];
    } catch {
      return [];
    }
  });
}

/** The container is in the host's network, and its configuration is written before it starts. */
