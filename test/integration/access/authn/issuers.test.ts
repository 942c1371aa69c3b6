import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { buildAuthenticator } from "../../../../src/access/authn/component.ts";
import { parseConfiguration } from "../../../../src/config/configuration.ts";
import { UpstreamTlsFiles } from "../../../../src/net/upstream-tls-files.ts";
import type { Logger } from "../../../../src/observability/logger.ts";
import type { Metrics } from "../../../../src/observability/metrics.ts";
import { issueCertificate } from "../../../support/test-certificates.ts";

interface Issuer {
  readonly url: string;
  readonly server: Server;
  readonly authority: string;
  readonly asked: string[];
  sign(claims: JWTPayload): Promise<string>;
}

let folder: string;
let first: Issuer;
let second: Issuer;

beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "sluice-issuers-"));
  [first, second] = await Promise.all([startIssuer(), startIssuer()]);
});

beforeEach(() => {
  first.asked.length = 0;
  second.asked.length = 0;
});

afterAll(async () => {
  await Promise.all([first, second].map(({ server }) => new Promise((resolve) => server.close(resolve))));
  rmSync(folder, { recursive: true });
});

it.each([
  "jwt",
  "configurationFile",
])("%s: the issuer of a token chooses its keys, prefix and claims", async (field) => {
  const authenticator = await authenticatorOf(field, [
    entryOf(first, { username: { claim: "email", prefix: "" }, groups: { claim: "roles", prefix: "a:" } }),
    entryOf(second, { username: { claim: "sub", prefix: "b:" }, uid: { claim: "oid" } }),
  ]);
  const claims = { email: "jane@a", sub: "jane", roles: ["dev"], oid: "u-1" };
  expect(await authenticator(await first.sign(claims))).toMatchObject({
    user: { name: "jane@a", uid: "", groups: ["a:dev", "system:authenticated"] },
  });
  expect(second.asked).toEqual([]);
  expect(await authenticator(await second.sign(claims))).toMatchObject({
    user: { name: "b:jane", uid: "u-1", groups: ["system:authenticated"] },
  });
});

it("no issuer signs for another one, and a token of none is unknown", async () => {
  const authenticator = await authenticatorOf("jwt", [entryOf(first), entryOf(second)]);
  expect(await authenticator(await first.sign({ iss: second.url }))).toEqual({
    fault: expect.stringContaining("token-"),
  });
  expect(await authenticator(await first.sign({ iss: "https://elsewhere" }))).toEqual({
    fault: "token-unknown",
  });
});

it("an issuer that is away leaves the others alone", async () => {
  const away = { ...second, url: "https://127.0.0.1:1" };
  const authenticator = await authenticatorOf("jwt", [entryOf(away), entryOf(first)]);
  expect(await authenticator(await first.sign({}))).toMatchObject({ user: { name: "jane" } });
  expect(await authenticator(await first.sign({ iss: away.url }))).toEqual({
    fault: "authority-unreachable",
  });
});

it("a made-up token is read once, however many issuers there are", async () => {
  const token = await first.sign({ iss: "https://elsewhere" });
  const others = Array.from({ length: 62 }, (_, index) => ({
    ...second,
    url: `https://127.0.0.1:1/${index}`,
  }));
  const readings = async (issuers: readonly Issuer[]): Promise<number> => {
    const authenticator = await authenticatorOf(
      "jwt",
      issuers.map((issuer) => entryOf(issuer)),
    );
    const parse = vi.spyOn(JSON, "parse");
    try {
      expect(await authenticator(token)).toEqual({ fault: "token-unknown" });
      return parse.mock.calls.length;
    } finally {
      parse.mockRestore();
    }
  };
  expect(await readings([first, second, ...others])).toBe(await readings([first]));
});

it.each([
  "jwt",
  "configurationFile",
])("%s: the written authority that expires first is noted", async (field) => {
  const authorities = await Promise.all(
    [90, 20, 60].map((days) =>
      issueCertificate({ commonName: "issuer" }, undefined, {
        notAfter: new Date(Date.now() + days * 86_400_000),
      }),
    ),
  );
  const noted: string[][] = [];
  const entries = authorities.map(({ cert }, index) =>
    entryOf({ ...first, url: `https://127.0.0.1:1/${index}`, authority: cert }),
  );
  await authenticatorOf(field, entries, (...values) => noted.push(values));
  expect(noted.at(-1)).toEqual(["oidc", "authority", authorities[1]?.cert]);
});

it("a file of authorities that cannot be read is named at the start, and later leaves the ones before", async () => {
  const caFile = path.join(folder, "issuer-ca.pem");
  const section = {
    issuerURL: first.url,
    audiences: ["sluice"],
    caFile,
    usernamePrefix: "-",
    signingAlgorithms: ["ES256"],
  };
  const build = async (errors: object[] = []) => {
    const logger = { info: () => {}, error: (fields: object) => errors.push(fields) };
    const upstreams = new UpstreamTlsFiles({ logger });
    onTestFinished(() => upstreams.stop());
    return { upstreams, authenticate: await authenticatorWith({ oidc: section }, upstreams) };
  };
  writeFileSync(caFile, "no certificate");
  await expect(build()).rejects.toMatchObject({
    name: "ConfigurationError",
    message: expect.stringMatching(/issuer-ca\.pem.*failed to find any PEM data/),
  });
  writeFileSync(caFile, first.authority);
  const errors: object[] = [];
  const { upstreams, authenticate } = await build(errors);
  writeFileSync(caFile, "no certificate");
  await upstreams.reload();
  expect(errors).toHaveLength(1);
  expect(await authenticate(await first.sign({}))).toMatchObject({ user: { name: "jane" } });
});

async function startIssuer(): Promise<Issuer> {
  const certificate = await issueCertificate({ commonName: "issuer" }, undefined, {
    addresses: ["127.0.0.1"],
  });
  const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
  const keys = [{ ...(await exportJWK(publicKey)), kid: "one", alg: "ES256", use: "sig" }];
  const asked: string[] = [];
  const server = createServer(certificate, (request, response) => {
    asked.push(request.url ?? "");
    response.end(
      JSON.stringify(request.url === "/keys" ? { keys } : { issuer: url, jwks_uri: `${url}/keys` }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const exp = Math.floor(Date.now() / 1_000) + 600;
  const sign = (claims: JWTPayload): Promise<string> =>
    new SignJWT({ iss: url, aud: "sluice", sub: "jane", exp, ...claims })
      .setProtectedHeader({ alg: "ES256", kid: "one" })
      .sign(privateKey);
  return { url, server, authority: certificate.cert, asked, sign };
}

function entryOf(
  { url, authority }: Issuer,
  claimMappings: object = { username: { claim: "sub", prefix: "" } },
): object {
  return { issuer: { url, audiences: ["sluice"], certificateAuthority: authority }, claimMappings };
}

/** Of a configuration with these issuers: a token's user, or what is wrong with it. */
async function authenticatorOf(
  field: string,
  jwt: readonly object[],
  onRead?: (use: string, certificate: string, pem: string) => void,
) {
  const file = path.join(folder, "auth.yaml");
  writeFileSync(
    file,
    JSON.stringify({ apiVersion: "apiserver.config.k8s.io/v1", kind: "AuthenticationConfiguration", jwt }),
  );
  const logger = { info: () => {}, error: () => {} };
  const upstreams = new UpstreamTlsFiles({ logger, ...(onRead && { onRead }) });
  return authenticatorWith(field === "jwt" ? { jwt } : { [field]: file }, upstreams);
}

async function authenticatorWith(authentication: object, upstreams: UpstreamTlsFiles) {
  const configuration = parseConfiguration(
    JSON.stringify({
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      authentication,
      authorization: { mode: ["RBAC"] },
    }),
    "gateway.yaml",
  );
  const results: string[] = [];
  const metrics = { access: { authenticationAttempted: (result: string) => results.push(result) } };
  const { authenticator } = await buildAuthenticator(
    configuration,
    metrics as unknown as Metrics,
    {} as Logger,
    upstreams,
  );
  return async (token: string) => {
    const user = await authenticator.authenticate({
      headers: [["authorization", `Bearer ${token}`]],
    });
    return user === undefined ? { fault: results.at(-1) } : { user };
  };
}
