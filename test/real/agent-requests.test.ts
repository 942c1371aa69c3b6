import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../packages/client/src/net/self-signed.ts";
import { type AgentProcess, startAgentProcess } from "../support/agent-process.ts";
import { TestApiServer } from "../support/api-server/test-api-server.ts";
import { eventually } from "../support/eventually.ts";
import { collect, KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectlSample } from "../support/real-parts.ts";

const USER_TOKEN = "the-users-token";

const deployment = (image: string) => `
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  containers: [{name: main, image: "${image}"}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`;

/** What `get`, `apply`, `logs -f` and helm do: no upgrades. The API server speaks TLS and knows the user's token alone. */
describeReal("kubectl", "requests through sluice agent", () => {
  describe.each(
    kubectlSample().map((kubectl) => ({ kubectl, version: kubectl.version })),
  )("kubectl $version", ({ kubectl, version }) => {
    let server: TestApiServer;
    let agent: AgentProcess;
    let runner: KubectlRunner;
    /** kubectl before 1.29 checks by itself, or asks whether it must, by a document in protobuf that is not here. */
    const unchecked = Number(version.split(".")[1]) < 29 ? ["--validate=false"] : [];

    beforeAll(async () => {
      const { certPem: cert, keyPem: key } = await createSelfSignedCertificate();
      const caller = { username: "ann", groups: ["dev"] };
      server = await TestApiServer.start({ tls: { cert, key }, tokens: { [USER_TOKEN]: caller } });
      agent = await startAgentProcess({ server: server.url, authority: cert, token: USER_TOKEN }, ["-v=9"]);
      runner = new KubectlRunner(kubectl, agent);
    });
    afterAll(async () => {
      runner?.remove();
      await agent?.stop();
      await server?.stop();
    });

    const output = async (...arguments_: string[]): Promise<string> => {
      const { exitCode, stdout, stderr } = await runner.run(arguments_);
      expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
      return stdout;
    };

    it("applies twice, shows, watches and deletes, as the user of the kubeconfig", async () => {
      const watch = runner.start(["get", "pods", "--watch", "-o", "name"]);
      const watched = collect(watch.stdout);
      const sawEvents = (count: number) =>
        eventually(
          () => `the watch sees ${count} events; it shows ${JSON.stringify(watched())}`,
          () => watched() === "pod/web\n".repeat(count),
        );
      try {
        await eventually("the watch begins", () => server.requests.some(({ isWatch }) => isWatch));
        const file = path.join(runner.folder, "web.yaml");
        await writeFile(file, deployment("web:1"));
        expect(await output("apply", "-f", file, ...unchecked)).toBe(
          "pod/web created\nservice/web created\n",
        );
        await writeFile(file, deployment("web:2"));
        expect(await output("apply", "-f", file, ...unchecked)).toBe(
          "pod/web configured\nservice/web unchanged\n",
        );
        expect(await output("get", "pod", "web", "-o", "jsonpath={.spec.containers[*].image}")).toBe("web:2");
        await sawEvents(2);
        expect(await output("delete", "pod", "web")).toMatch(/^pod "web" deleted/);
        await sawEvents(3);
      } finally {
        const closed = once(watch, "close");
        watch.kill("SIGKILL");
        await closed;
      }
      const callers = new Set(server.requests.map(({ caller }) => caller?.username));
      expect([...callers]).toEqual(["ann"]);
    });

    it("keeps large objects whole, as helm's releases are: a secret with labels, found by them", async () => {
      const data = randomBytes(512 * 1024).toString("base64");
      const labels = { owner: "helm", name: "web", status: "deployed", version: "1" };
      const metadata = { name: "sh.helm.release.v1.web.v1", labels };
      const release = {
        apiVersion: "v1",
        kind: "Secret",
        type: "helm.sh/release.v1",
        metadata,
        data: { release: data },
      };
      const file = path.join(runner.folder, "release.json");
      await writeFile(file, JSON.stringify(release));
      await output("create", "-f", file, ...unchecked);
      const found = await output("get", "secrets", "-l", "owner=helm,name=web", "-o", "json");
      expect(JSON.parse(found).items.map((item: typeof release) => item.data.release)).toEqual([data]);
    });

    it("follows logs to their end", async () => {
      const spec = { containers: [{ name: "main" }] };
      server.apply({ apiVersion: "v1", kind: "Pod", metadata: { name: "log" }, spec });
      server.logs.append("default", "log", "one\n");
      const child = runner.start(["logs", "-f", "log"]);
      const text = collect(child.stdout);
      const closed = once(child, "close");
      await eventually("the first line", () => text() === "one\n");
      server.logs.append("default", "log", "two\n");
      await eventually("the second line", () => text() === "one\ntwo\n");
      server.logs.end("default", "log");
      expect((await closed)[0]).toBe(0);
    });

    it("tells the user what the API server says, and shows no token", async () => {
      const { exitCode, stderr } = await runner.run(["get", "pod", "nobody"]);
      expect({ exitCode, stderr }).toEqual({
        exitCode: 1,
        stderr: 'Error from server (NotFound): pods "nobody" not found\n',
      });
      expect(agent.said()).toContain("Authorization: Bearer <masked>");
      expect(agent.said()).not.toContain(USER_TOKEN);
    });
  });
});
