import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runCommand } from "../../../../src/cli/command-line.ts";
import { GatewayFiles, webOn } from "../../../support/gateway-files.ts";
import { closedPort } from "../../../support/misbehaving-servers.ts";
import { issueCertificate, type TestCertificate } from "../../../support/test-certificates.ts";

const SERVER = "http://127.0.0.1:1";
const POLICY = { rules: [{ name: "no-sh", match: { command: [{ prefix: ["sh"] }] }, action: "deny" }] };
const ROLE = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "Role",
  metadata: { name: "streams", namespace: "default" },
  rules: [{ apiGroups: [""], resources: ["pods/exec"], verbs: ["get", "create"] }],
};
const BINDING = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "RoleBinding",
  metadata: { name: "dev-streams", namespace: "default" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "streams" },
  subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: "dev" }],
};

const base64 = (text: string) => Buffer.from(text).toString("base64");

function kubeconfigOf(user: object): string {
  const context = { cluster: "c", user: "u" };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "x",
    clusters: [{ name: "c", cluster: { server: "https://127.0.0.1:1" } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context }],
  });
}

let home = "";
let files: GatewayFiles;
let printed = "";

beforeEach(() => {
  home = mkdtempSync(path.join(tmpdir(), "sluice-explain-"));
  vi.stubEnv("HOME", home);
  vi.stubEnv("KUBECONFIG", "");
  files = new GatewayFiles({
    ...webOn(10_255),
    manifests: [ROLE, BINDING],
    configuration: { authorization: { mode: ["RBAC"] }, policy: POLICY },
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  rmSync(home, { recursive: true, force: true });
  files.remove();
});

async function explain(...args: string[]): Promise<{ code: number; first: string | undefined }> {
  printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  const code = await runCommand("explain", ["--config", files.configurationFile, ...args]);
  return { code, first: printed.split("\n")[0] };
}

describe("sluice explain puts the verdict first", () => {
  it("for a named user with groups: RBAC allows, and policy decides", async () => {
    const jane = ["--as", "jane", "--as-group", "dev"];
    expect(await explain("exec", "web", ...jane)).toEqual({
      code: 0,
      first: "allowed: no policy rule matches",
    });
    expect(printed).toContain(
      'authorization: RBAC: allowed by RoleBinding "dev-streams/default" of Role "streams" to Group "dev"\n' +
        "user jane in dev, system:authenticated, by --as\n\nexec default/web, container main",
    );
    expect(await explain("exec", "web", ...jane, "--command", "sh")).toEqual({
      code: 1,
      first: 'refused with 403: policy rule "no-sh" denies it',
    });
  });

  it("in the gateway's own words where RBAC refuses", async () => {
    expect(await explain("exec", "default/web", "--user", "eve")).toEqual({
      code: 1,
      first:
        'refused with 403: pods "web" is forbidden: User "eve" cannot get resource "pods/exec" in API group "" in the namespace "default"',
    });
    expect(printed).toContain("pass-through");
    expect((await explain("attach", "web", "--as", "jane", "--as-group", "dev")).first).toContain(
      'cannot get resource "pods/attach"',
    );
  });

  it("for the user that the kubeconfig's token is of, and in its namespace", async () => {
    vi.stubEnv("KUBECONFIG", files.writeKubeconfig(SERVER));
    expect(await explain("port-forward", "web")).toMatchObject({ code: 1 });
    expect(await explain("exec", "web", "--command", "sh")).toMatchObject({ code: 1 });
    expect(printed).toContain("user tester in dev, ops, system:authenticated, by ");
  });

  it("is a 401 for a given kubeconfig of a stranger, and none for one that happens to be there", async () => {
    const stranger = files.writeKubeconfig(SERVER, "unknown-token");
    expect(await explain("exec", "web", "--kubeconfig", stranger)).toEqual({
      code: 1,
      first: `refused with 401: this configuration does not know the user of ${stranger}`,
    });
    vi.stubEnv("KUBECONFIG", stranger);
    expect(await explain("exec", "web")).toEqual({
      code: 0,
      first: `no verdict: this configuration does not know the user of ${stranger}; --as NAME evaluates the rules for a user`,
    });
    await expect(explain("exec", "web", "--tty")).rejects.toThrow("--tty needs a user: give --as");
  });

  it("for the user of the kubeconfig's client certificate, if the configuration's authority signed it", async () => {
    const authority = await issueCertificate({ commonName: "authority" });
    const other = await issueCertificate({ commonName: "authority" });
    const authentication = { clientCAFile: files.write("ca.crt", authority.cert) };
    const configuration = { authentication, authorization: { mode: ["RBAC"] } };
    files.configure({ ...webOn(10_255), manifests: [ROLE, BINDING], configuration });
    const subject = { commonName: "kim", organizations: ["dev"] };
    const as = async (issuer: TestCertificate) => {
      const { cert, key } = await issueCertificate(subject, issuer, { usage: "client" });
      const user = { "client-certificate-data": base64(cert), "client-key-data": base64(key) };
      return await explain("exec", "web", "--kubeconfig", files.write("kim", kubeconfigOf(user)));
    };
    expect(await as(authority)).toEqual({ code: 0, first: "allowed: no policy rule matches" });
    expect(printed).toContain("user kim in dev, system:authenticated, by ");
    expect(await as(other)).toMatchObject({ code: 1, first: expect.stringContaining("refused with 401") });
  });

  it("does not wait for a plugin that does not answer, and names it", async () => {
    const exec = {
      apiVersion: "client.authentication.k8s.io/v1",
      command: "sleep",
      args: ["600"],
      interactiveMode: "Never",
    };
    vi.stubEnv("KUBECONFIG", files.write("plugin", kubeconfigOf({ exec })));
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    try {
      const explained = explain("exec", "web");
      await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
      await vi.advanceTimersByTimeAsync(30_000);
      expect(await explained).toEqual({
        code: 0,
        first:
          "no verdict: getting credentials: exec: executable sleep gave no answer in 30 s; --as NAME evaluates the rules for a user",
      });
    } finally {
      vi.useRealTimers();
    }
  });

  it("says that there is none without a user", async () => {
    expect(await explain("exec", "web")).toEqual({
      code: 0,
      first: "no verdict: no kubeconfig was found; --as NAME evaluates the rules for a user",
    });
  });

  it("is authorization's before it is that of a pod which is not there", async () => {
    expect((await explain("exec", "gone", "--as", "eve")).first).toContain('User "eve" cannot get');
    expect(await explain("exec", "gone", "--as", "jane", "--as-group", "dev")).toEqual({
      code: 1,
      first: 'refused with 404: pods "gone" not found',
    });
    await explain("exec", "gone", "--as", "eve");
    expect(printed).not.toContain("404");
    expect(printed).toContain('\npods "gone" not found\n');
  });

  it.each([
    [["create"], "over WebSocket: refused with 403: ", "cannot get", "over SPDY: allowed: no policy", 0],
    [["get"], 'refused with 403: pods "web" is forbidden: ', "", "over SPDY: refused with 403: ", 1],
  ] as const)("for each transport, with the verbs %j", async (verbs, first, words, second, code) => {
    const role = { ...ROLE, rules: [{ apiGroups: [""], resources: ["pods/exec"], verbs }] };
    const configuration = { authorization: { mode: ["RBAC"] } };
    files.configure({ ...webOn(10_255), manifests: [role, BINDING], configuration });
    const explained = await explain("exec", "web", "--as", "jane", "--as-group", "dev");
    expect(explained).toEqual({ code, first: expect.stringContaining(first) });
    expect(explained.first).toContain(words);
    expect(printed.split("\n")[1]).toContain(second);
    if (code === 1) return;
    expect(printed).toMatch(
      /kubectl 1\.30 and newer .+ refused +by authorization; kubectl then asks over SPDY\n/,
    );
    expect(printed).toMatch(/kubectl 1\.29 and older .+ pass-through /);
  });

  it("is none if an authenticator does not answer", async () => {
    const url = `http://127.0.0.1:${await closedPort()}`;
    const tokenReview = { url, tokenFile: files.write("own-token", "x") };
    files.configure({ ...webOn(10_255), configuration: { authentication: { tokenReview } } });
    const stranger = files.writeKubeconfig(SERVER, "unknown-token");
    expect(await explain("exec", "web", "--kubeconfig", stranger)).toEqual({
      code: 1,
      first: `no verdict: an authenticator of this configuration did not answer about the user of ${stranger}; --as NAME evaluates the rules for a user`,
    });
  });

  it("has no names that act on a terminal, and a line for a shell where the cluster holds the roles", async () => {
    const objects = [
      {
        metadata: { name: "web", namespace: "default" },
        spec: { nodeName: "n", containers: [{ name: "main", image: "i" }] },
      },
      {
        metadata: { name: "n" },
        status: { addresses: [{ type: "InternalIP", address: "127.0.0.1" }], declaredFeatures: ["a\u009bb"] },
      },
    ];
    const server = createServer(({ url = "" }, response) =>
      response.end(JSON.stringify(objects[url.includes("/nodes/") ? 1 : 0])),
    ).listen(0, "127.0.0.1");
    await once(server, "listening");
    const kubeconfig = files.writeKubeconfig(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const configuration = { cluster: { kubeconfig }, authorization: { mode: ["RBAC"] } };
    files.configure({ configuration });
    const { first } = await explain("exec", "web", "--as", "o'hara; rm", "--as-group", "a\u001b[2Jb");
    server.closeAllConnections();
    server.close();
    expect(first).toBe("by policy alone: allowed: no policy rule matches");
    expect(printed).not.toMatch(/[\u0080-\u009f]/);
    expect(printed).not.toContain("\u001b");
    expect(printed).toContain("kubectl auth can-i get pods/web --subresource=exec -n default ");
    expect(printed).toContain(" '--as=o'\\''hara; rm' ");
  });
});
