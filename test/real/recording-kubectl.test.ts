import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { FakeNode } from "../../packages/lab/src/fake-node/fake-node.ts";
import { eventually } from "../support/eventually.ts";
import { runWebNode } from "../support/fake-nodes.ts";
import { GatewayFiles, selfSignedPair, webOn } from "../support/gateway-files.ts";
import { collect, KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectls, oldestAndNewest } from "../support/real-parts.ts";
import { type Played, play } from "../support/recording/played.ts";
import { filesIn } from "../support/recording/recorded-gateway.ts";
import { type ServedGateway, serveGateway } from "../support/served-gateway.ts";
import { Sluice } from "../support/sluice.ts";

describeReal("kubectl", "what kubectl receives is what is recorded", () => {
  describe.each([
    { node: "a node with SPDY alone", declaresWebSockets: false },
    { node: "a node with WebSockets", declaresWebSockets: true },
  ])("$node", ({ declaresWebSockets }) => {
    let node: FakeNode;
    let files: GatewayFiles;
    let gateway: ServedGateway;
    const seen = new Set<string>();
    beforeAll(async () => {
      node = await runWebNode({ declaresWebSockets });
      files = new GatewayFiles();
      const recording = {
        folder: path.join(files.folder, "recordings"),
        minFreeBytes: 0,
        rules: [{ name: "all" }],
      };
      files.configure({
        tls: await selfSignedPair("gateway"),
        ...webOn(node.port, node.declaredFeatures),
        configuration: { recording },
      });
      gateway = await serveGateway(files.configurationFile);
    });
    afterAll(async () => {
      await gateway?.stop();
      await node?.close();
      files?.remove();
    });

    /** The recording that came since the last call. */
    async function next(): Promise<Played> {
      const file = await eventually("the session's recording", () =>
        filesIn(path.join(files.folder, "recordings"), ".cast").find((each) => !seen.has(each)),
      );
      seen.add(file);
      expect(await new Sluice({}).run(["recordings", "verify", file])).toMatchObject({ exitCode: 0 });
      return play(readFileSync(file, "utf8"));
    }

    describe.each(oldestAndNewest(kubectls()))("kubectl $version", (kubectl) => {
      let runner: KubectlRunner;
      beforeAll(() => {
        runner = new KubectlRunner(kubectl, {
          kubeconfig: files.writeKubeconfig(gateway.ready.apiServerUrl),
        });
      });
      afterAll(() => runner?.remove());
      const plan = !declaresWebSockets && kubectl.minor >= 30 ? "translate" : "pass-through";

      it("exec and exec -i", { timeout: 120_000 }, async () => {
        const input = randomBytes(48 * 1024).toString("base64");
        const script = "printf 'gr\\303\\274n '; cat; echo to-stderr >&2; exit 7";
        const result = await runner.run(["exec", "-i", "web", "--", "sh", "-c", script], { input });
        expect({ ...result, stdout: "" }).toMatchObject({ exitCode: 7 });
        const recorded = await next();
        expect(recorded.stdout.toString() === result.stdout).toBe(true);
        // kubectl adds a line of its own about the exit code.
        expect(result.stderr.startsWith(recorded.stderr.toString())).toBe(true);
        expect([recorded.stderr.toString(), recorded.of("x")]).toEqual(["to-stderr\n", ["7"]]);
        expect(recorded.header).toMatchObject({ sluice: { plan } });
        const plain = await runner.run(["exec", "web", "--", "sh", "-c", "seq 1 20000"]);
        const second = await next();
        expect(second.stdout.toString() === plain.stdout).toBe(true);
        expect(second.of("x")).toEqual(["0"]);
      });

      it("exec -it", { timeout: 120_000 }, async () => {
        const terminal = runner.startInTerminal(["exec", "-it", "web", "--", "sh"], {
          columns: 91,
          rows: 33,
        });
        let screen = "";
        terminal.onData((text) => {
          screen += text;
        });
        const ended = new Promise<number>((resolve) => terminal.onExit(({ exitCode }) => resolve(exitCode)));
        await eventually(
          "a size",
          () => {
            if (screen.includes("33 91")) return true;
            terminal.write("stty size\r");
            return false;
          },
          { timeoutMs: 30_000, intervalMs: 200 },
        );
        terminal.write("printf 'gr\\303\\274n\\n'; exit 3\r");
        expect(await ended).toBe(3);
        const recorded = await next();
        expect(screen).toContain(recorded.stdout.toString());
        expect(recorded.stdout.toString()).toContain("33 91");
        expect(recorded.of("x")).toEqual(["3"]);
      });

      it("get recordings -w", { timeout: 120_000 }, async () => {
        const watch = runner.start(["get", "recordings", "-w", "--output-watch-events"]);
        const [rows, problem] = [collect(watch.stdout), collect(watch.stderr)];
        const count = (type: string) => rows().match(new RegExp(`^${type} `, "gm"))?.length ?? 0;
        const before = filesIn(path.join(files.folder, "recordings"), ".cast").length;
        try {
          await eventually("the list", () => count("ADDED") === before, { timeoutMs: 30_000 });
          await runner.run(["exec", "web", "--", "true"]);
          await next();
          await eventually("the new one", () => count("ADDED") === before + 1, { timeoutMs: 30_000 });
          const [, name = ""] = /(\S+) +web [^\n]*\n$/.exec(rows()) ?? [];
          expect(await runner.run(["delete", "recording", name])).toMatchObject({ exitCode: 0 });
          await eventually("its end", () => count("DELETED") === 1, { timeoutMs: 30_000 });
          expect(rows()).toMatch(new RegExp(`DELETED +${name} +web +main +exec `));
          expect(problem()).toBe("");
        } finally {
          watch.kill("SIGKILL");
        }
      });

      it("attach", { timeout: 120_000 }, async () => {
        const child = runner.start(["attach", "-i", "web"]);
        const stdout = collect(child.stdout);
        const closed = once(child, "close");
        child.stdin.write("said to cat\n");
        await eventually("the container answers", () => stdout().includes("said to cat\n"), {
          timeoutMs: 30_000,
        });
        child.kill("SIGKILL");
        await closed;
        const recorded = await next();
        expect(recorded.stdout.toString()).toBe(stdout());
        expect(recorded.of("x")).toEqual([]);
      });
    });
  });
});
