import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AccessGateway } from "../../../../support/access-gateway.ts";
import { KubectlRunner } from "../../../../support/kubectl.ts";
import { kubectls } from "../../../../support/real-parts.ts";
import { issueCertificate, type TestCertificate } from "../../../../support/test-certificates.ts";

/** jane is a superuser by her group; joe may nothing. */
describe("kubectl with a client certificate", () => {
  let gateway: AccessGateway;
  const people: Record<string, TestCertificate> = {};

  beforeAll(async () => {
    const users = await issueCertificate({ commonName: "users" });
    people.jane = await issueCertificate({ commonName: "jane", organizations: ["system:masters"] }, users, {
      usage: "client",
    });
    people.joe = await issueCertificate({ commonName: "joe" }, users, { usage: "client" });
    gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "users.crt"), users.cert);
      return {
        authentication: { clientCAFile: "users.crt" },
        authorization: { mode: ["RBAC"] },
        audit: { log: { path: "audit.log" } },
      };
    });
  });
  afterAll(() => gateway.stop());

  const kubeconfigOf = (name: string): string => {
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    const { cert = "", key = "" } = people[name] ?? {};
    const server = `https://${gateway.authority}`;
    const file = path.join(gateway.folder, `${name}.kubeconfig`);
    const kubeconfig = {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "c",
      clusters: [{ name: "c", cluster: { server, "certificate-authority-data": base64(gateway.trusted) } }],
      users: [{ name, user: { "client-certificate-data": base64(cert), "client-key-data": base64(key) } }],
      contexts: [{ name: "c", context: { cluster: "c", user: name, namespace: "default" } }],
    };
    writeFileSync(file, JSON.stringify(kubeconfig));
    return file;
  };

  // Older ones speak SPDY, to whom the scripted node does not answer; who they are is told in the same way.
  for (const kubectl of kubectls().filter(({ minor }) => minor >= 30)) {
    it(`${kubectl.version}: is who it says, may be somebody else where allowed, and is written down`, async () => {
      const jane = new KubectlRunner(kubectl, { kubeconfig: kubeconfigOf("jane") });
      const joe = new KubectlRunner(kubectl, { kubeconfig: kubeconfigOf("joe") });
      try {
        expect(await jane.run(["exec", "web", "--", "id"])).toMatchObject({ exitCode: 0 });
        const asJoe = await jane.run(["exec", "web", "--as", "joe", "--", "id"]);
        expect(asJoe.stderr).toMatch(/User "joe" cannot (get|create) resource/);
        expect(asJoe.exitCode).toBe(1);
        const asJane = await joe.run(["exec", "web", "--as", "jane", "--", "id"]);
        // kubectl asks for discovery first, whose refusals client-go does not read: it says "unknown", as with kube-apiserver.
        expect(asJane.stderr).toContain("Error from server (Forbidden)");
        const events = readFileSync(path.join(gateway.folder, "audit.log"), "utf8");
        expect(events).toContain('User \\"joe\\" cannot impersonate-on:user-info:get path');
        expect(events).toContain('"impersonatedUser":{"username":"joe"');
        expect(events).toContain(
          '"user":{"username":"jane","groups":["system:masters","system:authenticated"]',
        );
      } finally {
        jane.remove();
        joe.remove();
      }
    });
  }
});
