import { expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { collect, KubectlRunner } from "../support/kubectl.ts";
import { clusterRole, clusterRoleBinding, resourceRule } from "../support/rbac-objects.ts";
import { describeReal, kubectlSample } from "../support/real-parts.ts";
import { startTestGateway } from "../support/test-gateway.ts";

const ROLE = clusterRole("shells", resourceRule("get||pods"), resourceRule("get,create||pods/exec"));
const BINDING = clusterRoleBinding("ana", "ClusterRole/shells", "User:ana");

// About 3 s for each kubectl.
describeReal("kubectl", "a shell whose user's rights are revoked", () => {
  it.each(kubectlSample())("kubectl $version says why it ended, and exits with 1", async (kubectl) => {
    const gateway = await startTestGateway({
      fakeNodes: [{}],
      users: ["ana-token,ana,1"],
      manifests: [ROLE, BINDING],
      configuration: { authorization: { mode: ["RBAC"] }, sessions: { reauthorizeInterval: "1s" } },
    });
    const runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfigFor("ana-token") });
    const shell = runner.start(["exec", "-i", "web", "--", "sh", "-c", "echo ready; exec cat"]);
    try {
      const [output, problem] = [collect(shell.stdout), collect(shell.stderr)];
      const closed = new Promise<number | null>((resolve) => shell.once("close", resolve));
      await eventually("the command runs", () => output().includes("ready"));
      const list = JSON.parse(gateway.files.read("cluster.json")) as { items: { metadata: object }[] };
      const items = list.items.filter(({ metadata }) => !("name" in metadata && metadata.name === "ana"));
      gateway.files.write("cluster.json", JSON.stringify({ ...list, items }));
      await gateway.reload();
      expect(await closed).toBe(1);
      expect(problem()).toMatch(
        /error: the session was ended: pods "web" is forbidden: User "ana" cannot \w+ resource "pods\/exec"/,
      );
    } finally {
      shell.kill("SIGKILL");
      runner.remove();
      await gateway.stop();
    }
  }, 60_000);
});
