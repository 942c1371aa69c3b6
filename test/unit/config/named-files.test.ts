import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkFiles } from "../../../src/app/check-files.ts";
import { parseConfiguration } from "../../../src/config/configuration.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

// The bound under test.
const MAX_NAMED_FILE_BYTES = 16 * 1024 * 1024;

let folder = "";
const place = (name: string) => path.join(folder, name);

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "sluice-named-files-"));
  for (const name of ["a", "b"]) {
    const { cert, key } = await issueCertificate({ commonName: name });
    writeFileSync(place(`${name}.crt`), cert);
    writeFileSync(place(`${name}.key`), key);
  }
  writeFileSync(place("empty"), "\n");
  writeFileSync(place("huge"), "");
  truncateSync(place("huge"), MAX_NAMED_FILE_BYTES + 1);
  writeFileSync(place("broken.crt"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  writeFileSync(place("policy.yaml"), "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Loud}]\n");
  writeFileSync(
    place("webhook.yaml"),
    `current-context: x
contexts: [{name: x, context: {cluster: x}}]
clusters:
  - name: x
    cluster: {server: "https://a", certificate-authority: a.key}
`,
  );
});

afterAll(() => rmSync(folder, { recursive: true }));

/** What is wrong with a configuration's files, by line. */
async function problemsOf(yaml: string, flags = {}): Promise<string> {
  const text = `apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\n${yaml}`;
  return checkFiles(parseConfiguration(text, place("gateway.yaml"), flags)).then(
    () => "",
    (error: Error) => error.message.replaceAll(folder, ""),
  );
}

const tls = (certFile: string, keyFile: string) =>
  `listeners:\n  apiServer:\n    tls:\n      certFile: ${certFile}\n      keyFile: ${keyFile}\n`;

describe("files that a configuration names", () => {
  it("accepts a certificate with its key, and authorities", async () => {
    expect(
      await problemsOf(
        `${tls("a.crt", "a.key")}authentication: {clientCAFile: b.crt}\nauthorization: {mode: [RBAC]}\n`,
      ),
    ).toBe("");
  });

  it.each([
    "audit.webhook",
    "authentication.tokenReview",
    "authorization.webhook",
  ])("judges the client's pair in the kubeconfig of %s, in files and in place", async (field) => {
    const inPlace = (name: string) => Buffer.from(readFileSync(place(name))).toString("base64");
    const users = {
      fitting: `client-certificate: a.crt, client-key: a.key`,
      "of files": `client-certificate: a.crt, client-key: b.key`,
      "in place": `client-certificate-data: ${inPlace("a.crt")}, client-key-data: ${inPlace("b.key")}`,
      mixed: `client-certificate: a.crt, client-key-data: ${inPlace("b.key")}`,
    };
    const [section, webhook] = field.split(".");
    const mode = { authorization: "mode: [Webhook], ", audit: "policyFile: p.yaml, ", authentication: "" };
    writeFileSync(place("p.yaml"), "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n");
    for (const [kind, user] of Object.entries(users)) {
      writeFileSync(
        place("pair.yaml"),
        `current-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n` +
          `clusters: [{name: x, cluster: {server: "https://a"}}]\nusers: [{name: x, user: {${user}}}]\n`,
      );
      const more = section === "authentication" ? "authorization: {mode: [AlwaysAllow]}\n" : "";
      const given = mode[section as keyof typeof mode];
      const problems = await problemsOf(
        `${section}: {${given}${webhook}: {kubeconfigFile: pair.yaml}}\n${more}`,
      );
      const wrong = "the client's key in /pair.yaml does not belong to its certificate: tls: private key";
      if (kind === "fitting") expect(problems).toBe("");
      else expect([kind, problems]).toEqual([kind, expect.stringContaining(wrong)]);
    }
  });

  it.each([
    ["missing.crt", "a.key", "certFile", "/missing.crt: no such file or directory"],
    [
      "a.crt",
      "b.key",
      "keyFile",
      "the key in /b.key does not belong to the certificate in /a.crt: tls: private key does not match public key",
    ],
    ["a.key", "a.key", "certFile", "/a.key has no certificate in PEM"],
    ["empty", "a.key", "certFile", "/empty is empty"],
    ["huge", "a.key", "certFile", "/huge: the file has more than 16777216 bytes"],
  ])("names field and line of %s with %s", async (certFile, keyFile, field, message) => {
    const line = field === "certFile" ? 6 : 7;
    expect(await problemsOf(tls(certFile, keyFile))).toBe(
      `/gateway.yaml:${line}:7: listeners.apiServer.tls.${field}: ${message}`,
    );
  });

  it("names what OpenSSL cannot read, without its content", async () => {
    const problems = await problemsOf(tls("broken.crt", "a.crt"));
    expect(problems).toContain(
      "/gateway.yaml:6:7: listeners.apiServer.tls.certFile: certificate 1 of /broken.crt cannot be read: ",
    );
    expect(problems).toContain(
      "/gateway.yaml:7:7: listeners.apiServer.tls.keyFile: /a.crt has no private key",
    );
    expect(problems).not.toContain("AAAA");
  });

  it("reads the files that a named file names, at the lines of that file", async () => {
    const files = "audit: {policyFile: policy.yaml, webhook: {kubeconfigFile: webhook.yaml}}\n";
    const problems = await problemsOf(files);
    expect(problems).toContain("/policy.yaml:3:10: rules[0].level: ");
    expect(problems).toContain(
      "/webhook.yaml:5:36: clusters[0].cluster.certificate-authority: /a.key has no certificate in PEM",
    );
  });

  it("compares the file's key with the certificate of a flag", async () => {
    expect(await problemsOf(tls("a.crt", "a.key"), { "tls-cert-file": place("b.crt") })).toBe(
      "--tls-cert-file: the key in /a.key does not belong to the certificate in /b.crt: tls: private key does not match public key",
    );
  });

  it("reads what a flag names, and not what it replaces", async () => {
    expect(
      await problemsOf(tls("missing.crt", "missing.key"), {
        "tls-cert-file": place("a.crt"),
        "tls-private-key-file": place("b.key"),
      }),
    ).toBe(
      "--tls-private-key-file: the key in /b.key does not belong to the certificate in /a.crt: tls: private key does not match public key",
    );
  });
});
