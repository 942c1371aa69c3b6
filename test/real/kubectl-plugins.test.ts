import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { loadKubeconfig } from "../../packages/client/src/kubernetes/kubeconfig.ts";
import { KubectlRunner } from "../support/kubectl.ts";
import { describeReal, kubectls } from "../support/real-parts.ts";

const V1 = "client.authentication.k8s.io/v1";
const printing = (output: string) => ({
  exec: {
    apiVersion: V1,
    command: "sh",
    args: ["-c", 'printf %s "$1"', "plugin", output],
    interactiveMode: "Never",
  },
});
const credential = (status: object | undefined, apiVersion = V1) =>
  printing(JSON.stringify({ apiVersion, kind: "ExecCredential", status }));
const running = (more: object) => ({ exec: { apiVersion: V1, interactiveMode: "Never", ...more } });

describeReal("kubectl", "credentials that kubectl refuses", () => {
  let runner: KubectlRunner;
  let kubeconfig: string;
  beforeEach(() => {
    const [newest] = kubectls().slice(-1);
    if (newest === undefined) expect.unreachable("there is a kubectl");
    runner = new KubectlRunner(newest, { kubeconfig: "config" });
    kubeconfig = path.join(runner.folder, "config");
  });
  afterEach(() => runner.remove());

  it.each<[string, object]>([
    ["a plugin that is not installed", running({ command: "sluice-no-such-plugin", installHint: "get it" })],
    ["a plugin that is not there", running({ command: "/nowhere/plugin" })],
    ["a plugin that may not be run", running({ command: "/etc" })],
    ["a plugin that fails", running({ command: "sh", args: ["-c", "exit 7"] })],
    ["a plugin that is killed", running({ command: "sh", args: ["-c", "kill -9 $$"] })],
    ["a plugin that needs a terminal", running({ command: "true", interactiveMode: "Always" })],
    ["no status", credential(undefined)],
    ["an empty status", credential({})],
    ["a key alone", credential({ clientKeyData: "k" })],
    ["another version", credential({ token: "t" }, "client.authentication.k8s.io/v1beta1")],
    ["the provider gcp", { "auth-provider": { name: "gcp" } }],
    ["the provider azure", { "auth-provider": { name: "azure" } }],
    ["a provider that does not exist", { "auth-provider": { name: "x" } }],
    ["oidc without an issuer", { "auth-provider": { name: "oidc", config: { "client-id": "c" } } }],
    [
      "oidc without tokens",
      {
        "auth-provider": {
          name: "oidc",
          config: { "client-id": "c", "idp-issuer-url": "https://127.0.0.1:1" },
        },
      },
    ],
  ])("%s: in the same words", async (_, user) => {
    const config = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
      clusters: [{ name: "k", cluster: { server: "https://127.0.0.1:1" } }],
      users: [{ name: "u", user }],
    };
    await writeFile(kubeconfig, JSON.stringify(config));
    const refused = await loadKubeconfig(kubeconfig, undefined, { environment: {} }).catch(
      (error: Error) => error,
    );
    const { exitCode, stderr } = await runner.run(["--kubeconfig", kubeconfig, "get", "--raw", "/version"]);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain(refused instanceof Error ? refused.message : "we take it");
  });
});
