import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeconfigEntries } from "../../../packages/client/src/kubernetes/kubeconfig-entries.ts";
import { pluginOf } from "../../../packages/client/src/kubernetes/plugin-credentials.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

/** What the provider answers at its token endpoint, request by request; and what it was asked. */
let answers: { readonly status?: number; readonly body: unknown }[];
let asked: { readonly authorization: string | undefined; readonly form: Readonly<Record<string, string>> }[];
let discovery: Readonly<Record<string, unknown>>;
let hangs: boolean;
let issuer: string;
let ca: string;
let stop: () => Promise<void>;

beforeEach(async () => {
  const certificate = await issueCertificate({ commonName: "issuer" }, undefined, {
    addresses: ["127.0.0.1"],
  });
  [answers, asked, ca, hangs] = [[], [], certificate.cert, false];
  const server = createServer(certificate, async (request, response) => {
    if (hangs) return undefined;
    if (request.url === "/o/.well-known/openid-configuration") return response.end(JSON.stringify(discovery));
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const form = Object.fromEntries(new URLSearchParams(Buffer.concat(chunks).toString()));
    asked.push({ authorization: request.headers.authorization, form });
    const { status = 200, body } = answers.shift() ?? { status: 500, body: {} };
    return response.writeHead(status).end(JSON.stringify(body));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const origin = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  issuer = `${origin}/o/`;
  discovery = { token_endpoint: `${origin}/token` };
  stop = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
});
afterEach(() => stop());

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const idToken = (expiresInS: number) =>
  `${part({ alg: "none" })}.${part({ exp: Math.round(Date.now() / 1_000) + expiresInS })}.c2ln`;
const entries = (name: string, config: Readonly<Record<string, string>>): KubeconfigEntries => ({
  server: "https://api.example",
  namespace: "default",
  certificateAuthority: undefined,
  insecureSkipTLSVerify: false,
  tlsServerName: undefined,
  proxyUrl: undefined,
  user: { authProvider: { name, config } },
});
const oidc = (config: Readonly<Record<string, string>> = {}, timeoutMs = 10_000) => {
  const given = {
    "idp-issuer-url": issuer,
    "client-id": "sluice",
    "client-secret": "s:1",
    "idp-certificate-authority-data": Buffer.from(ca).toString("base64"),
    ...config,
  };
  return pluginOf(entries("oidc", given), { timeoutMs }) ?? expect.unreachable("there is a provider");
};
const basic = `Basic ${Buffer.from("sluice:s%3A1").toString("base64")}`;

describe("the auth provider oidc", () => {
  it("gives the id token while it is valid, and asks nothing", async () => {
    const token = idToken(3_600);
    const given = await oidc({ "id-token": token })();
    expect(given).toMatchObject({ authorization: `Bearer ${token}`, certificate: undefined });
    expect(given.expiresAtMs).toBeLessThan(Date.now() + 3_600_000);
    expect(asked).toEqual([]);
  });

  it("renews one that expires within ten seconds, and goes on with the new refresh token", async () => {
    const [second, third] = [idToken(9), idToken(3_600)];
    answers.push({ body: { id_token: second, refresh_token: "r2" } }, { body: { id_token: third } });
    const ask = oidc({ "id-token": idToken(9), "refresh-token": "r1" });
    expect((await ask()).authorization).toBe(`Bearer ${second}`);
    expect((await ask()).authorization).toBe(`Bearer ${third}`);
    expect((await ask()).authorization).toBe(`Bearer ${third}`);
    expect(asked).toEqual([
      { authorization: basic, form: { grant_type: "refresh_token", refresh_token: "r1" } },
      { authorization: basic, form: { grant_type: "refresh_token", refresh_token: "r2" } },
    ]);
  });

  it("puts the client's secret into the form for a provider that refuses the header", async () => {
    answers.push({ status: 401, body: { error: "invalid_client" } }, { body: { id_token: idToken(3_600) } });
    await oidc({ "refresh-token": "r1" })();
    expect(asked[1]).toEqual({
      authorization: undefined,
      form: { grant_type: "refresh_token", refresh_token: "r1", client_id: "sluice", client_secret: "s:1" },
    });
  });

  it.each<[string, () => Readonly<Record<string, string>>, () => unknown, string]>([
    [
      "nothing to renew with",
      () => ({}),
      () => ({}),
      "No valid id-token, and cannot refresh without refresh-token",
    ],
    ["an id token that is none", () => ({ "id-token": "secret" }), () => ({}), "ID Token is not a valid JWT"],
    [
      "an answer without an id token",
      () => ({ "refresh-token": "secret" }),
      () => ({ access_token: "secret" }),
      "token response did not contain an id_token",
    ],
    [
      "an id token in the answer that is none",
      () => ({ "refresh-token": "secret" }),
      () => ({ id_token: "secret\nx" }),
      "ID Token is not a valid JWT",
    ],
  ])("fails with client-go's sentence for %s", async (_, config, body, message) => {
    answers.push({ body: body() });
    const refused = oidc(config())();
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.not.toThrow(/secret|s:1/);
  });

  it("names a refusal by its code alone", async () => {
    const body = { error: "invalid_grant", error_description: "the token secret is old" };
    answers.push({ status: 400, body }, { status: 400, body });
    await expect(oidc({ "refresh-token": "secret" })()).rejects.toThrow(
      /^failed to refresh token: HTTP 400 \(invalid_grant\)$/,
    );
  });

  it.each<[Readonly<Record<string, unknown>>, string]>([
    [{}, "oidc: discovery object doesn't contain a token_endpoint"],
    [{ token_endpoint: "http://127.0.0.1/token" }, "oidc: the token_endpoint must be an https URL"],
  ])("sends no refresh token after the discovery %j", async (given, message) => {
    discovery = given;
    await expect(oidc({ "refresh-token": "r1" })()).rejects.toThrow(message);
    expect(asked).toEqual([]);
  });

  it("waits for a provider only so long", async () => {
    hangs = true;
    await expect(oidc({ "refresh-token": "r1" }, 50)()).rejects.toThrow(
      /^no answer from 127\.0\.0\.1:\d+ within 50 ms$/,
    );
  });

  it("verifies the provider's certificate", async () => {
    const other = await issueCertificate({ commonName: "other" });
    const data = Buffer.from(other.cert).toString("base64");
    const refused = oidc({ "refresh-token": "r1", "idp-certificate-authority-data": data })();
    await expect(refused).rejects.toThrow(
      /^127\.0\.0\.1:\d+: tls: failed to verify certificate: x509: certificate signed by unknown authority$/,
    );
    expect(asked).toEqual([]);
  });
});

describe("auth providers that are not to be had", () => {
  it.each<[string, Readonly<Record<string, string>>, RegExp]>([
    ["gcp", {}, /^The gcp auth plugin has been removed\.\nPlease use the "gke-gcloud-auth-plugin"/],
    [
      "azure",
      {},
      /^The azure auth plugin has been removed\.\nPlease use the https:\/\/github\.com\/Azure\/kubelogin/,
    ],
    ["openstack", {}, /^no Auth Provider found for name "openstack"$/],
    ["oidc", {}, /^Must provide idp-issuer-url$/],
    ["oidc", { "idp-issuer-url": "https://issuer.example" }, /^Must provide client-id$/],
    ["oidc", { "idp-issuer-url": "http://issuer.example", "client-id": "c" }, /must be an https URL$/],
  ])("%s with %j", async (name, config, message) => {
    await expect(async () => pluginOf(entries(name, config))?.()).rejects.toThrow(message);
  });
});
