import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { KubectlRunner } from "../../../../support/kubectl.ts";
import {
  clusterRole,
  clusterRoleBinding,
  resourceRule,
  role,
  roleBinding,
} from "../../../../support/rbac-objects.ts";
import { describeReal, kubectls } from "../../../../support/real-parts.ts";
import { startTestGateway, type TestGateway } from "../../../../support/test-gateway.ts";

const manifests = [
  clusterRole(
    "viewer",
    resourceRule("get,list,watch||pods,nodes,namespaces"),
    resourceRule("get||pods/exec"),
  ),
  clusterRoleBinding("viewers", "ClusterRole/viewer", "Group:viewers"),
  role("default", "operator", resourceRule("get,create||pods/exec|web")),
  roleBinding("default", "operators", "Role/operator", "User:olga"),
];

describeReal("kubectl", "kubectl auth, asked by real kubectls", () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway({
      pods: [{ name: "web", nodeName: "node", container: "main" }],
      users: [
        "token-viktor,viktor,u1,viewers",
        'token-olga,olga,u2,"viewers,staff"',
        "token-nobody,nobody,u3",
      ],
      manifests,
      configuration: { authorization: { mode: ["RBAC"] } },
    });
  });
  afterAll(() => gateway.stop());

  for (const kubectl of kubectls()) {
    describe(`kubectl ${kubectl.version}`, () => {
      const runners: KubectlRunner[] = [];
      const as = (name: string) => {
        const runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfigFor(`token-${name}`) });
        runners.push(runner);
        return async (...arguments_: string[]) => {
          const { exitCode, stdout, stderr } = await runner.run(arguments_);
          return { exitCode, stdout: stdout.trim(), stderr };
        };
      };
      afterAll(() => {
        for (const runner of runners) runner.remove();
      });

      it("can-i answers yes and no, with a reason where there is one", async () => {
        const viktor = as("viktor");
        expect(await viktor("auth", "can-i", "get", "pods")).toMatchObject({ exitCode: 0, stdout: "yes" });
        expect(await viktor("auth", "can-i", "get", "pods", "--subresource=exec")).toMatchObject({
          stdout: "yes",
        });
        expect(await viktor("auth", "can-i", "create", "pods/exec")).toMatchObject({
          exitCode: 1,
          stdout: expect.stringMatching(/^no/),
        });
        expect(await viktor("auth", "can-i", "get", "/version")).toMatchObject({ stdout: "yes" });
        expect(await viktor("auth", "can-i", "get", "/metrics")).toMatchObject({ exitCode: 1 });
        const olga = as("olga");
        expect(await olga("auth", "can-i", "create", "pods/web", "--subresource=exec")).toMatchObject({
          stdout: "yes",
        });
        expect(await olga("auth", "can-i", "create", "pods/db", "--subresource=exec")).toMatchObject({
          exitCode: 1,
        });
      });

      it("can-i --list prints what there is", async () => {
        const { exitCode, stdout } = await as("olga")("auth", "can-i", "--list");
        expect(exitCode).toBe(0);
        expect(stdout).toMatch(/^pods\/exec +\[\] +\[web\] +\[get create\]$/m);
        expect(stdout).toMatch(/^pods +\[\] +\[\] +\[get list watch\]$/m);
        expect(stdout).toMatch(/^selfsubjectaccessreviews\.authorization\.k8s\.io +\[\] +\[\] +\[create\]$/m);
        expect(stdout).toMatch(/^ +\[\/version\] +\[\] +\[get\]$/m);
      });

      it("whoami tells name and groups", async ({ skip }) => {
        skip(kubectl.minor < 27, "kubectl before 1.27 has no auth whoami");
        const { exitCode, stdout, stderr } = await as("olga")("auth", "whoami");
        expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
        expect(stdout).toMatch(/^Username +olga$/m);
        expect(stdout).toMatch(/^UID +u2$/m);
        expect(stdout).toMatch(/^Groups +\[viewers staff system:authenticated\]$/m);
      });

      it("get is authorised as what it is", async () => {
        expect(await as("viktor")("get", "pods", "-o", "name")).toMatchObject({ stdout: "pod/web" });
        const { exitCode, stderr } = await as("nobody")("get", "pods");
        expect(exitCode).toBe(1);
        expect(stderr).toContain(
          'Error from server (Forbidden): pods is forbidden: User "nobody" cannot list resource "pods" in API group "" in the namespace "default"',
        );
        expect((await as("nobody")("get", "node", "x")).stderr).toContain(
          'nodes "x" is forbidden: User "nobody" cannot get resource "nodes" in API group "" at the cluster scope',
        );
      });
    });
  }
});
