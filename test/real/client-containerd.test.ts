import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { describeReal } from "../support/real-parts.ts";
import { Sluice } from "../support/sluice.ts";
import { type ContainerdGateway, startContainerdGateway } from "./containerd/containerd-gateway.ts";
import { describeEachContainerd } from "./containerd/each-containerd.ts";

const digest = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");

describeReal("containerd", "the client's commands and containers of busybox", () => {
  describeEachContainerd((running) => {
    let gateway: ContainerdGateway;
    let sluice: Sluice;
    let folder: string;

    beforeAll(async () => {
      const containerd = running();
      if (containerd === undefined) return;
      gateway = await startContainerdGateway(containerd);
      sluice = new Sluice({ KUBECONFIG: gateway.kubeconfig });
      folder = mkdtempSync(path.join(tmpdir(), "sluice-busybox-"));
    });
    afterAll(async () => {
      if (folder) rmSync(folder, { recursive: true, force: true });
      await gateway?.stop();
    });

    it.each(["true", "false"])("exec, with WebSockets %s", async (value) => {
      const environment = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: value };
      const args = ["exec", "-i", "web", "--", "sh", "-c", "cat; exit 9"];
      expect(await sluice.run(args, { input: "to busybox", environment })).toMatchObject({
        exitCode: 9,
        stdout: "to busybox",
      });
    });

    it("cp of a file and a folder, both ways, over a network that cuts connections", async () => {
      const port = Number(new URL(gateway.apiServerUrl).port);
      let cuts = 0;
      const copy = async (...args: string[]): Promise<void> => {
        // Fewer than the attempts that may bring nothing: this busybox' tar leaves nothing out, so a folder starts anew each time.
        const proxy = await startFaultProxy(port, { cutAfterBytes: 3_000_000, maxCuts: 4 });
        try {
          const kubeconfig = path.join(folder, "kubeconfig");
          const text = readFileSync(gateway.kubeconfig, "utf8");
          writeFileSync(kubeconfig, text.replaceAll(`:${port}`, `:${proxy.port}`));
          const faulty = new Sluice({ KUBECONFIG: kubeconfig });
          expect(await faulty.run(["cp", ...args])).toMatchObject({ exitCode: 0, stderr: "" });
        } finally {
          cuts += proxy.cuts;
          await proxy.close();
        }
      };
      // Of an odd size: what is sent at once is halved where connections do not last.
      const file = path.join(folder, "file");
      writeFileSync(file, randomBytes(8 * 1024 * 1024 + 1));
      await copy(file, "web:/tmp/file");
      await copy("web:/tmp/file", `${file}.back`);
      expect(digest(`${file}.back`)).toBe(digest(file));

      const tree = path.join(folder, "tree");
      mkdirSync(tree);
      for (let index = 0; index < 8; index += 1) {
        writeFileSync(path.join(tree, `[${index}] *`), randomBytes(512 * 1024));
      }
      await copy(tree, "web:/tmp/tree");
      await copy("web:/tmp/tree", `${tree}.back`);
      for (let index = 0; index < 8; index += 1) {
        const name = `[${index}] *`;
        expect(digest(path.join(`${tree}.back`, name))).toBe(digest(path.join(tree, name)));
      }
      expect(cuts).toBeGreaterThan(3);
    });
  });
});
