import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { parseManifests } from "../../../../src/cluster/manifests.ts";
import { exampleCluster, exampleManifests } from "../../../support/api/example-cluster.ts";
import { eventually } from "../../../support/eventually.ts";
import { collect } from "../../../support/kubectl.ts";
import { describeReal, kubectls } from "../../../support/real-parts.ts";
import { runnerAt } from "./http-adapter.ts";

describeReal("kubectl", "the read-only API, asked by real kubectls", () => {
  for (const kubectl of kubectls()) {
    describe(`kubectl ${kubectl.version}`, () => {
      const store = exampleCluster();
      const runner = runnerAt(kubectl, store);

      const output = async (...arguments_: string[]): Promise<string> => {
        const { exitCode, stdout, stderr } = await runner().run(arguments_);
        // Older releases warn that the kubeconfig, which they do not need, is not there.
        const complaints = stderr.replace(/^W.*Config not found.*\n/gm, "");
        expect({ exitCode, complaints }).toEqual({ exitCode: 0, complaints: "" });
        return stdout;
      };
      const rowsOf = (text: string) =>
        text
          .trimEnd()
          .split("\n")
          .map((line) => line.trim().split(/\s{2,}/));

      it("prints pods, nodes and namespaces, wide", async () => {
        const text = await output("get", "pods,nodes,ns", "-A", "-o", "wide");
        expect(text).toMatch(
          /^NAMESPACE +NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES\n/,
        );
        expect(text).toMatch(
          /\ndefault +pod\/web +1\/1 +Running +0 +\d+y\w* +10\.1\.0\.7 +node-spdy +<none> +<none>\n/,
        );
        expect(text).toMatch(/\nother +pod\/waiting +0\/1 +Pending +0 +/);
        expect(text).toMatch(
          / node\/node-spdy +Ready +edge +\d+y\w* +v1\.30\.0 +10\.0\.0\.1 +<none> +Debian +6\.1 +containerd:\/\/1\.6\.20\n/,
        );
        expect(text).toMatch(/ node\/node-ws +Unknown,SchedulingDisabled +<none> +/);
        expect(text).toMatch(/ namespace\/other +Active +/);
      });

      it("selects by labels and fields", async () => {
        const names = async (...arguments_: string[]) =>
          (await output("get", "pods", "-o", "name", ...arguments_)).trim();
        expect(await names("-l", "app=web,tier in (back)")).toBe("pod/web-ws");
        expect(await names("--field-selector", "spec.nodeName=node-spdy")).toBe("pod/web");
        expect(await names("-A", "--field-selector", "status.phase!=Running")).toBe("pod/waiting");
      });

      it("pages through small chunks", async () => {
        const rows = rowsOf(await output("get", "pods", "-A", "--no-headers", "--chunk-size=1"));
        expect(rows.map(([namespace, name]) => `${namespace}/${name}`)).toEqual([
          "default/web",
          "default/web-ws",
          "other/waiting",
        ]);
      });

      it("gives objects back with fields that it does not know", async () => {
        const pod = JSON.parse(await output("get", "pod", "web", "-o", "json"));
        expect(pod.spec.someday).toEqual({ unknown: ["kept", 1, true] });
        expect(await output("get", "pods", "-o", "yaml")).toContain("nodeName: node-ws");
      });

      it("lists resources and versions, and describes", async () => {
        const rows = rowsOf(await output("api-resources", "--no-headers"));
        expect(rows.map((row) => [row[0], row[1], row.at(-1)])).toEqual([
          ["namespaces", "ns", "Namespace"],
          ["nodes", "no", "Node"],
          ["pods", "po", "Pod"],
          ["services", "svc", "Service"],
          ["deployments", "deploy", "Deployment"],
          ["selfsubjectreviews", "authentication.k8s.io/v1", "SelfSubjectReview"],
          ["selfsubjectaccessreviews", "authorization.k8s.io/v1", "SelfSubjectAccessReview"],
          ["selfsubjectrulesreviews", "authorization.k8s.io/v1", "SelfSubjectRulesReview"],
          ["ingressclasses", "networking.k8s.io/v1", "IngressClass"],
          ["ingresses", "ing", "Ingress"],
        ]);
        expect((await runner().run(["version"])).stdout).toContain("v1.36.0+sluice");
        expect(await output("describe", "pod", "web")).toMatch(
          /Node: +node-spdy\/\n[\s\S]*Status: +Running\n/,
        );
        expect(await output("describe", "node", "node-spdy")).toMatch(/Name: +node-spdy\n/);
      });

      it("says in Kubernetes' words what is not there and what may not be done", async () => {
        expect((await runner().run(["get", "pod", "nope"])).stderr).toContain(
          'Error from server (NotFound): pods "nope" not found\n',
        );
        const { stderr } = await runner().run(["delete", "pod", "web", "--wait=false"]);
        expect(stderr).toContain("the server does not allow this method on the requested resource");
      });

      it("prints rows as they change", async () => {
        const child = runner().start(["get", "pods", "-n", "other", "-w"]);
        const stdout = collect(child.stdout);
        const closed = once(child, "close");
        await eventually("the first row", () => /^waiting +0\/1 +Pending/m.test(stdout()));
        const nowPlaced = exampleManifests.replace(
          "spec: {containers: [{name: main, image: web:1}]}",
          "spec: {nodeName: node-ws, containers: [{name: main, image: web:1}]}",
        );
        store.replaceAll(parseManifests([{ name: "x.yaml", text: nowPlaced }]), new Date());
        await eventually("the changed row", () => /^waiting +1\/1 +Running/m.test(stdout()));
        child.kill();
        await closed;
      });

      it("waits for what an edit brings", async () => {
        expect(await output("wait", "--for=condition=Ready", "pod/web", "--timeout=20s")).toBe(
          "pod/web condition met\n",
        );
        const watching = runner().run([
          "wait",
          "--for=delete",
          "pod/waiting",
          "-n",
          "other",
          "--timeout=20s",
        ]);
        const withoutWaiting = exampleManifests.replace(
          / {2}- apiVersion: v1\n {4}kind: Pod\n {4}metadata: \{name: waiting[\s\S]*$/,
          "",
        );
        await watchBegan(store);
        store.replaceAll(parseManifests([{ name: "x.yaml", text: withoutWaiting }]), new Date());
        expect(await watching).toMatchObject({ exitCode: 0, stdout: "pod/waiting condition met\n" });
      });
    });
  }
});

/** Kept when the store has got a listener: a watch stands. */
function watchBegan(store: ReturnType<typeof exampleCluster>): Promise<void> {
  return new Promise((resolve) => {
    const subscribe = store.subscribe.bind(store);
    store.subscribe = (listener) => {
      resolve();
      return subscribe(listener);
    };
  });
}
