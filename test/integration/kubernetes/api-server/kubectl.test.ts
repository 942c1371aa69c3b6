import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TestApiServer } from "../../../support/api-server/test-api-server.ts";
import { eventually } from "../../../support/eventually.ts";
import { collect, KubectlRunner } from "../../../support/kubectl.ts";
import { describeReal, kubectlSample } from "../../../support/real-parts.ts";

const manifest = (image: string, label: string) => `
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: team, labels: {tier: ${label}}}
spec:
  containers:
  - {name: main, image: "${image}", ports: [{containerPort: 80}]}
  - {name: side, image: side:1}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: team}
spec: {selector: {tier: ${label}}, ports: [{port: 80}]}
`;

describeReal("kubectl", "the test API server, used by real kubectls", () => {
  describe.each(
    kubectlSample().map((kubectl) => ({ kubectl, version: kubectl.version })),
  )("kubectl $version", ({ kubectl, version }) => {
    let server: TestApiServer;
    let runner: KubectlRunner;
    /** kubectl before 1.29 checks by itself, or asks whether it must, by a document in protobuf that is not here. */
    const unchecked = Number(version.split(".")[1]) < 29 ? ["--validate=false"] : [];

    beforeAll(async () => {
      server = await TestApiServer.start();
      runner = new KubectlRunner(kubectl, server);
    });
    afterAll(async () => {
      runner.remove();
      await server.stop();
    });

    const output = async (...arguments_: string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await runner.run(arguments_);
      expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
      return stdout;
    };

    it("creates, applies twice, shows, describes, deletes", async () => {
      const file = path.join(runner.folder, "web.yaml");
      await writeFile(file, manifest("web:1", "front"));
      expect(await output("apply", "-f", file, ...unchecked)).toBe(
        "namespace/team created\npod/web created\nservice/web created\n",
      );
      await writeFile(file, manifest("web:2", "back"));
      expect(await output("apply", "-f", file, ...unchecked)).toBe(
        "namespace/team unchanged\npod/web configured\nservice/web configured\n",
      );
      const shown = await output(
        "get",
        "pod",
        "web",
        "-n",
        "team",
        "-o",
        "jsonpath={.spec.containers[*].image} {.metadata.generation}",
      );
      expect(shown).toBe("web:2 side:1 2");
      expect(await output("get", "pods,svc", "-n", "team")).toMatch(
        /pod\/web +0\/2 +Pending[\s\S]*service\/web/,
      );
      expect(await output("describe", "pod", "web", "-n", "team")).toMatch(/Labels: +tier=back[\s\S]*web:2/);
      const configMap = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace: "team" } };
      await writeFile(file, JSON.stringify(configMap));
      expect(await output("create", "-f", file, ...unchecked)).toBe("configmap/c created\n");
      expect(await output("label", "pod", "web", "-n", "team", "a=b")).toMatch(/^pod\/web labeled\n/);
      expect(await output("delete", "pod", "web", "-n", "team")).toMatch(/^pod "web" deleted/);
      expect(await output("get", "pods", "-n", "team")).toBe("");
    });

    it("follows logs", async () => {
      server.apply({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "log" },
        spec: { containers: [{ name: "main" }] },
      });
      server.logs.append("default", "log", "one\n");
      const child = runner.start(["logs", "-f", "log"]);
      const text = collect(child.stdout);
      await eventually("the first line", () => text() === "one\n");
      server.logs.append("default", "log", "two\n");
      await eventually("the second line", () => text() === "one\ntwo\n");
      server.logs.end("default", "log");
      await eventually("its end", () => child.exitCode === 0);
    });
  });
});
