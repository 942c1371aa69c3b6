import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CredentialsError } from "../../../../packages/client/src/kubernetes/credentials-error.ts";
import { UsageError } from "../../../../src/cli/command.ts";
import { runCommand } from "../../../../src/cli/command-line.ts";
import { GatewayFiles } from "../../../support/gateway-files.ts";
import { issueCertificate } from "../../../support/test-certificates.ts";

/** Every command that connects, with a kubeconfig that is well formed and of no use. */
describe("a kubeconfig that cannot be used", () => {
  const files = new GatewayFiles({});
  const keys = { one: "", other: "", certificate: "" };
  beforeAll(async () => {
    const [one, other] = [
      await issueCertificate({ commonName: "a" }),
      await issueCertificate({ commonName: "b" }),
    ];
    Object.assign(keys, { one: one.key, other: other.key, certificate: one.cert });
  });
  afterAll(() => files.remove());

  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const junk = (what: string) => `-----BEGIN ${what}-----\nAAAA\n-----END ${what}-----\n`;
  const written = (user: object, cluster: object = {}) =>
    files.write(
      "unusable",
      JSON.stringify({
        "current-context": "c",
        contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
        clusters: [{ name: "k", cluster: { server: "https://127.0.0.1:1", ...cluster } }],
        users: [{ name: "u", user }],
      }),
    );
  const ofPair = (certificate: string, key: string) =>
    written({ "client-certificate-data": base64(certificate), "client-key-data": base64(key) });
  const proxied = (url: string) => written({ token: "t" }, { "proxy-url": url });

  const cases: readonly [string, () => string, string][] = [
    ["another certificate's key", () => ofPair(keys.certificate, keys.other), "does not match public key"],
    ["a broken certificate", () => ofPair(junk("CERTIFICATE"), keys.one), "x509: malformed certificate"],
    ["a broken key", () => ofPair(keys.certificate, junk("PRIVATE KEY")), "failed to parse private key"],
    ["a certificate for a key", () => ofPair(keys.certificate, keys.certificate), "tls: "],
    ["a proxy of another protocol", () => proxied("foo://u:hunter2@x"), "invalid proxy address"],
    ["a proxy that is not a URL", () => proxied("http://u:hunter2@:::"), "invalid proxy address"],
  ];
  const commands: readonly (readonly [string, ...string[]])[] = [
    ["exec", "web", "--", "true"],
    ["attach", "web"],
    ["cp", "web:/x", "-"],
    ["port-forward", "web", "0:80"],
    ["logs", "web"],
    ["sessions", "list"],
    ["conformance", "--pod", "default/web", "--quick"],
  ];
  it.each([
    ["load", "exec", "web"],
    ["conformance", "--pod", "default/web", "--quick"],
  ])("and flags of %s that cannot be used are told to the user", async (name, ...words) => {
    const certificate = files.write("client.crt", keys.certificate);
    const key = files.write("other.key", keys.other);
    const flags = [
      "--server",
      "https://127.0.0.1:1",
      "--client-certificate",
      certificate,
      "--client-key",
      key,
    ];
    const error = await runCommand(name, [...words, ...flags]).catch((reason: unknown) => reason);
    expect(error).toEqual(expect.any(UsageError));
    expect((error as Error).message).toMatch(
      /^--server https:\/\/127\.0\.0\.1:1: tls: private key .*does not match public key/,
    );
  });

  it.each(cases)("with %s is a message to the user", async (_, kubeconfig, problem) => {
    for (const [name, ...words] of commands) {
      const at = words.includes("--") ? words.indexOf("--") : words.length;
      const args = [...words.slice(0, at), "--kubeconfig", kubeconfig(), ...words.slice(at)];
      const error = await runCommand(name, args).catch((reason: unknown) => reason);
      expect([name, error]).toEqual([name, expect.any(CredentialsError)]);
      expect((error as Error).message).toContain(problem);
      expect((error as Error).message).not.toContain("hunter2");
    }
  });
});
