import { X509Certificate } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { TLSSocket } from "node:tls";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CertificateAuthority } from "../../../../src/access/authn/certificate-authority.ts";
import { peerCertificatesOf } from "../../../../src/listeners/serving-certificate.ts";
import { AccessGateway } from "../../../support/access-gateway.ts";
import { issueCertificate, type TestCertificate } from "../../../support/test-certificates.ts";

describe("client certificates and the front proxy", () => {
  let gateway: AccessGateway;
  const certificates: Record<string, TestCertificate> = {};

  beforeAll(async () => {
    const users = await issueCertificate({ commonName: "users" });
    const proxies = await issueCertificate({ commonName: "proxies" });
    const stranger = await issueCertificate({ commonName: "stranger" });
    const between = await issueCertificate({ commonName: "between" }, users, { isAuthority: true });
    const jane = { commonName: "jane", organizations: ["dev", "on, call"] };
    const throughBetween = await issueCertificate(jane, between, { usage: "client" });
    Object.assign(certificates, {
      jane: await issueCertificate(jane, users, { usage: "client" }),
      nameless: await issueCertificate({ organizations: ["dev"] }, users, { usage: "client" }),
      server: await issueCertificate(jane, users, { usage: "server" }),
      expired: await issueCertificate(jane, users, {
        usage: "client",
        notBefore: new Date(Date.now() - 7_200_000),
        notAfter: new Date(Date.now() - 3_600_000),
      }),
      stranger: await issueCertificate(jane, stranger, { usage: "client" }),
      chained: { cert: `${throughBetween.cert}\n${between.cert}`, key: throughBetween.key },
      proxy: await issueCertificate({ commonName: "front" }, proxies, { usage: "client" }),
      otherProxy: await issueCertificate({ commonName: "other" }, proxies, { usage: "client" }),
    });
    const front = await issueCertificate({ commonName: "front" }, users, { usage: "client" });
    // The proxies' authority is public: its certificate may be shown by anybody.
    certificates.confused = { cert: `${front.cert}\n${proxies.cert}`, key: front.key };
    gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "users.crt"), users.cert);
      writeFileSync(path.join(folder, "proxies.crt"), proxies.cert);
      writeFileSync(path.join(folder, "tokens.csv"), "good-token,tina,2\n");
      return {
        authentication: {
          clientCAFile: "users.crt",
          requestHeader: { clientCAFile: "proxies.crt", allowedNames: ["front"] },
          tokenAuthFile: "tokens.csv",
        },
      };
    });
  });

  afterAll(() => gateway.stop());

  const userOf = async (caller: { certificate?: string; headers?: Record<string, string> }) => {
    const { certificate, headers = {} } = caller;
    const before = gateway.logLines.length;
    const { status } = await gateway.exec({
      headers,
      certificate: certificate === undefined ? undefined : certificates[certificate],
    });
    const line = gateway.logLines.slice(before).find((text) => text.includes("session started"));
    return { status, user: line === undefined ? undefined : JSON.parse(line).session.user };
  };

  it.each([
    ["a user's certificate", { certificate: "jane" }, "jane"],
    ["a token without a certificate", { headers: { Authorization: "Bearer good-token" } }, "tina"],
    [
      "a token beside a certificate that is no good",
      { certificate: "stranger", headers: { Authorization: "Bearer good-token" } },
      "tina",
    ],
    ["the front proxy for its user", { certificate: "proxy", headers: { "X-Remote-User": "paul" } }, "paul"],
    [
      "a user's certificate beside proxy headers",
      { certificate: "jane", headers: { "x-REMOTE-user": "root" } },
      "jane",
    ],
    [
      "a user's certificate named as the proxy, with the proxies' authority in its chain",
      { certificate: "confused", headers: { "X-Remote-User": "root" } },
      "front",
    ],
  ])("%s is the right user", async (_, caller, user) => {
    expect(await userOf(caller)).toEqual({ status: 101, user });
  });

  it("a certificate behind an intermediate is the right user", async ({ skip }) => {
    // So the certificate's authority is unknown if two are trusted.
    skip(Number(process.versions.node.split(".")[0]) >= 24, "Node.js 24 shows a server no intermediates");
    expect(await userOf({ certificate: "chained" })).toEqual({ status: 101, user: "jane" });
  });

  it.each([
    ["no credential", {}, "no-credentials"],
    ["a stranger's certificate", { certificate: "stranger" }, "certificate-unverified"],
    ["an expired certificate", { certificate: "expired" }, "certificate-unverified"],
    ["a server's certificate", { certificate: "server" }, "certificate-unverified"],
    [
      "proxy headers alone",
      { headers: { "X-Remote-User": "root", "X-Remote-Group": "system:masters" } },
      "no-credentials",
    ],
    [
      "a proxy that is not on the list",
      { certificate: "otherProxy", headers: { "X-Remote-User": "root" } },
      "certificate-name-not-allowed",
    ],
    ["the proxy without a user", { certificate: "proxy" }, "certificate-unverified"],
    ["an unknown token", { headers: { Authorization: "Bearer bad" } }, "token-unknown"],
  ])("%s is refused with 401 and counted", async (_, caller, fault) => {
    const name = `sluice_authentication_attempts_total{result="${fault}"}`;
    const countOf = async () => Number((await gateway.metric(name))[0]?.split(" ")[1] ?? 0);
    const before = await countOf();
    expect(await userOf(caller)).toEqual({ status: 401, user: undefined });
    expect(await countOf()).toBe(before + 1);
  });

  it("a certificate without a common name is nobody", async () => {
    expect((await userOf({ certificate: "nameless" })).status).toBe(401);
  });
});

describe("a front proxy of other header names", () => {
  it("is believed, keeps anonymous users unauthenticated, and nothing that it says travels to a node", async () => {
    const proxies = await issueCertificate({ commonName: "proxies" });
    const certificate = await issueCertificate({ commonName: "front" }, proxies, { usage: "client" });
    const gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "proxies.crt"), proxies.cert);
      return {
        authentication: {
          requestHeader: {
            clientCAFile: "proxies.crt",
            usernameHeaders: ["X-Corp-User"],
            uidHeaders: ["X-Corp-Uid"],
            groupHeaders: ["X-Corp-Group"],
            extraHeaderPrefixes: ["X-Corp-Extra-"],
          },
        },
        audit: { log: { path: "audit.log" } },
      };
    });
    try {
      const headers = (user: string) => ({
        "x-corp-USER": user,
        "X-Corp-Uid": "7",
        "X-Corp-Group": "corp-group",
        "x-corp-extra-Team": "corp-team",
        "X-Kept": "1",
      });
      // Passed through to the node, so that its request is the client's.
      expect(
        (await gateway.exec({ certificate, headers: headers("paul") }, ["v4.channel.k8s.io"])).status,
      ).not.toBe(401);
      await gateway.exec({ certificate, headers: headers("system:anonymous") });
      const sent = gateway.kubelet.requests.concat(gateway.kubelet.sessions.map(({ request }) => request));
      const lines = sent.flatMap(({ rawHeaders }) => rawHeaders).join("\n");
      expect(lines).toContain("X-Kept");
      expect(lines.toLowerCase()).not.toContain("corp");
      const events = readFileSync(path.join(gateway.folder, "audit.log"), "utf8").trimEnd().split("\n");
      const users = events.map((line) => (JSON.parse(line) as { user: object }).user);
      expect(users).toContainEqual(
        expect.objectContaining({ username: "paul", groups: ["corp-group", "system:authenticated"] }),
      );
      expect(users).toContainEqual(
        expect.objectContaining({ username: "system:anonymous", groups: ["corp-group"] }),
      );
    } finally {
      await gateway.stop();
    }
  });
});

describe("an authority", () => {
  it("does not take what another one of the same name has issued", async () => {
    const ours = await issueCertificate({ commonName: "kubernetes" });
    const other = await issueCertificate({ commonName: "kubernetes" });
    const { cert } = await issueCertificate({ commonName: "jane" }, other, { usage: "client" });
    const peer = {
      leaf: new X509Certificate(cert),
      // Whoever can connect can show these: names lead from the leaf to ours, signatures do not.
      intermediates: [new X509Certificate(ours.cert)],
      isVerified: true,
    };
    expect(new CertificateAuthority(ours.cert).hasIssued(peer)).toBe(false);
    expect(new CertificateAuthority(other.cert).hasIssued(peer)).toBe(true);
    expect(new CertificateAuthority(`${ours.cert}\n${other.cert}`).hasIssued(peer)).toBe(true);
    expect(new CertificateAuthority(other.cert).hasIssued({ ...peer, isVerified: false })).toBe(false);
    // With no second bundle, what OpenSSL verified can have come from nowhere else, whatever is seen of the path.
    const unseenPath = { ...peer, intermediates: [] };
    expect(new CertificateAuthority(ours.cert, true).hasIssued(unseenPath)).toBe(true);
    expect(new CertificateAuthority(ours.cert, true).hasIssued({ ...unseenPath, isVerified: false })).toBe(
      false,
    );
  });

  it("follows eight certificates between a client's and itself, and no more", async () => {
    const root = await issueCertificate({ commonName: "root" });
    const between: TestCertificate[] = [];
    for (let index = 0; index < 9; index += 1) {
      const name = { commonName: `between ${index}` };
      between.unshift(await issueCertificate(name, between[0] ?? root, { isAuthority: true }));
    }
    const other = await issueCertificate({ commonName: "other" });
    const authority = new CertificateAuthority(`${root.cert}\n${other.cert}`);
    const hasIssued = async (count: number) => {
      const path = between.slice(-count);
      const { cert } = await issueCertificate({ commonName: "jane" }, path[0], { usage: "client" });
      const intermediates = path.map((certificate) => new X509Certificate(certificate.cert));
      return authority.hasIssued({ leaf: new X509Certificate(cert), intermediates, isVerified: true });
    };
    expect(await hasIssued(8)).toBe(true);
    expect(await hasIssued(9)).toBe(false);
  });

  it("is shown ten certificates of a chain, and no more", () => {
    const chain = { issuerCertificate: undefined as unknown };
    // As long as one that names itself as its issuer.
    chain.issuerCertificate = chain;
    const socket: TLSSocket = Object.create(TLSSocket.prototype, {
      getPeerX509Certificate: { value: () => chain },
      authorized: { value: true },
    });
    expect(peerCertificatesOf(socket)?.intermediates).toHaveLength(10);
  });

  it("takes the labels that OpenSSL takes, as check-config does", async () => {
    const { cert } = await issueCertificate({ commonName: "authority" });
    const old = cert.replaceAll(" CERTIFICATE", " X509 CERTIFICATE");
    expect(() => new CertificateAuthority(old)).not.toThrow();
  });

  it("refuses a bundle without certificates", () => {
    expect(() => new CertificateAuthority("nothing")).toThrow("holds no PEM certificate");
  });
});
