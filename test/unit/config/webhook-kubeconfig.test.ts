import { describe, expect, it } from "vitest";
import type { ConfigurationError } from "../../../packages/client/src/config/configuration-error.ts";
import { parseWebhookKubeconfig } from "../../../packages/client/src/config/webhook-kubeconfig.ts";

const PEM = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n";
const DATA = Buffer.from(PEM).toString("base64");

function kubeconfig(cluster: string, user = "{}", more = ""): string {
  return `apiVersion: v1
kind: Config
preferences: {}
current-context: webhook
clusters:
  - { name: other, cluster: { server: "ftp://not-looked-at" } }
  - { name: authz, cluster: ${cluster} }
users:
  - { name: gateway, user: ${user} }
contexts:
  - { name: webhook, context: { cluster: authz, user: gateway } }
${more}`;
}

const problemsOf = (text: string): string[] => {
  try {
    parseWebhookKubeconfig(text, "/etc/authz.conf");
    return [];
  } catch (error) {
    return (error as ConfigurationError).problems.map(
      ({ line, path, message }) => `${line} ${path}: ${message}`,
    );
  }
};

describe("a webhook's kubeconfig", () => {
  it("says server, authority, certificate and token of its current context; files count from its folder", () => {
    const text = kubeconfig(
      '{ server: "https://authz.example.com/authorize?x=1", certificate-authority: ca.crt, tls-server-name: authz }',
      `{ client-certificate-data: "${DATA}", client-key: /keys/client.key, token: abc, tokenFile: token }`,
    );
    const { files, ...target } = parseWebhookKubeconfig(text, "/etc/authz.conf");
    expect(files.map(({ file }) => file)).toEqual(["/etc/ca.crt", "/keys/client.key", "/etc/token"]);
    expect(target).toEqual({
      url: "https://authz.example.com/authorize?x=1",
      certificateAuthority: { file: "/etc/ca.crt" },
      insecureSkipTLSVerify: false,
      tlsServerName: "authz",
      clientCertificate: { pem: PEM },
      clientKey: { file: "/keys/client.key" },
      token: "abc",
      tokenFile: "/etc/token",
    });
  });

  it("takes a context without a user, and JSON", () => {
    const json = JSON.stringify({
      "current-context": "c",
      contexts: [{ name: "c", context: { cluster: "s" } }],
      clusters: [{ name: "s", cluster: { server: "http://127.0.0.1:1" } }],
    });
    expect(parseWebhookKubeconfig(json, "f")).toMatchObject({ url: "http://127.0.0.1:1", token: undefined });
  });

  it.each([
    ["", "1 current-context: is required"],
    [kubeconfig("{}"), "7 clusters[1].cluster.server: is required"],
    [kubeconfig('{ server: "unix:///x" }'), "must be an http or https URL"],
    [kubeconfig('{ server: "https://a", proxy-url: "http://p" }'), "proxy-url: is not supported"],
    [
      kubeconfig(
        `{ server: "https://a", insecure-skip-tls-verify: true, certificate-authority-data: "${DATA}" }`,
      ),
      "insecure-skip-tls-verify: must be false if an authority is given",
    ],
    [
      kubeconfig('{ server: "https://a" }', "{ client-key: k }"),
      "client-certificate: is required with client-key",
    ],
    [
      kubeconfig('{ server: "https://a" }', "{ exec: { command: aws } }"),
      "9 users[0].user.exec: is not supported",
    ],
    [kubeconfig('{ server: "https://a" }', '{ username: u, password: "p" }'), "password: is not supported"],
    [
      kubeconfig('{ server: "https://a" }', "{ client-key-data: AAAA, client-certificate: c }"),
      "must be PEM in base64",
    ],
    ["current-context: x\n", '1 contexts: has no entry named "x"'],
  ])("is refused with its line: %#", (text, problem) => {
    expect(problemsOf(text).join("\n")).toContain(problem);
  });

  it("does not repeat a token that is wrong", () => {
    const problems = problemsOf(kubeconfig('{ server: "https://a" }', '{ token: "my secret" }'));
    expect(problems).toEqual(["9 users[0].user.token: must be one word of ASCII"]);
  });
});
