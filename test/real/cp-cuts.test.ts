import { execFileSync } from "node:child_process";
import { createHash, randomFillSync } from "node:crypto";
import {
  closeSync,
  createReadStream,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pipeline } from "node:stream/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { containerds, describeReal } from "../support/real-parts.ts";
import { Sluice } from "../support/sluice.ts";
import { type ContainerdGateway, startContainerdGateway } from "./containerd/containerd-gateway.ts";
import { type RunningContainerd, startContainerd } from "./containerd/start-containerd.ts";

const MIB = 1024 * 1024;
const SIZE_MIB = Number(process.env.SLUICE_CP_MIB ?? 256);
const SIZE_BYTES = SIZE_MIB * MIB;
const CUTS = 50;
const CUT_AFTER_BYTES = (SIZE_BYTES / 1024) * 18;
/** What a connection may have taken without its having arrived: the largest socket buffers of Linux, sent and received, on the way. */
const OVERLAP_BYTES = 12 * MIB;

async function digest(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file, { highWaterMark: MIB }), hash);
  return hash.digest("hex");
}

function fill(file: string): void {
  const descriptor = openSync(file, "w");
  const piece = Buffer.alloc(MIB);
  for (let bytes = 0; bytes < SIZE_BYTES; bytes += MIB) writeSync(descriptor, randomFillSync(piece));
  closeSync(descriptor);
}

describeReal("containerd", `${SIZE_MIB} MiB over a network that cuts the connection ${CUTS} times`, () => {
  let containerd: RunningContainerd;
  let gateway: ContainerdGateway;
  let folder: string;

  beforeAll(async () => {
    const [binaries] = containerds().filter(({ isInstalled }) => isInstalled);
    if (binaries === undefined) throw new Error("no containerd is installed");
    containerd = await startContainerd(binaries);
    gateway = await startContainerdGateway(containerd);
    folder = mkdtempSync(path.join(tmpdir(), "sluice-gib-"));
  });
  afterAll(async () => {
    if (folder) rmSync(folder, { recursive: true, force: true });
    await gateway?.stop();
    await containerd?.stop();
  });

  async function copy(from: string, to: string): Promise<void> {
    const port = Number(new URL(gateway.apiServerUrl).port);
    const proxy = await startFaultProxy(port, { cutAfterBytes: CUT_AFTER_BYTES, maxCuts: CUTS });
    try {
      const kubeconfig = path.join(folder, "kubeconfig");
      const text = readFileSync(gateway.kubeconfig, "utf8").replaceAll(`:${port}`, `:${proxy.port}`);
      writeFileSync(kubeconfig, text);
      const run = await new Sluice({ KUBECONFIG: kubeconfig }).run(["cp", "-v", "4", from, to], {
        timeoutMs: 600_000,
      });
      expect(run.exitCode, run.stderr).toBe(0);
      const extraMib = Math.round((proxy.bytes - SIZE_BYTES) / MIB);
      console.info(`${from} to ${to}: ${proxy.cuts} cuts, ${extraMib} MiB carried besides the file's`);
      expect(proxy.cuts).toBe(CUTS);
      expect(proxy.bytes).toBeLessThan(SIZE_BYTES + CUTS * OVERLAP_BYTES);
    } finally {
      await proxy.close();
    }
  }

  it("arrives whole, there and back, and never starts from zero", { timeout: 1_300_000 }, async () => {
    const file = path.join(folder, "file");
    fill(file);
    await copy(file, "web:/tmp/file");
    await copy("web:/tmp/file", `${file}.back`);
    expect(await digest(`${file}.back`)).toBe(await digest(file));
    expect(execFileSync("ls", ["-A", folder], { encoding: "utf8" })).not.toContain("partial");
  });
});
