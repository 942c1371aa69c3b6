import { describe, expect, it } from "vitest";
import type { KubeconfigEntries } from "../../../packages/client/src/kubernetes/kubeconfig-entries.ts";
import { applyOverrides } from "../../../packages/client/src/kubernetes/kubeconfig-overrides.ts";

const entries: KubeconfigEntries = {
  server: "https://api.example:6443",
  namespace: "team",
  certificateAuthority: { pem: "authority" },
  insecureSkipTLSVerify: false,
  tlsServerName: "kubernetes",
  proxyUrl: "http://proxy.example:3128",
  user: {
    tokenFile: "/token",
    clientCertificate: { pem: "certificate" },
    clientKey: { pem: "key" },
    basic: { username: "jane", password: "old" },
    impersonate: { user: "joe", uid: "1", groups: ["dev"], extra: { a: ["1"] } },
  },
};

describe("overrides of a kubeconfig", () => {
  it("nothing given changes nothing", () => {
    expect(applyOverrides(entries, {})).toEqual(entries);
    expect(applyOverrides(entries, { context: "c", insecureSkipTLSVerify: false })).toEqual(entries);
  });

  it.each([
    [{ namespace: "other" }, { namespace: "other" }],
    [{ server: "https://other:1/below/" }, { server: "https://other:1/below", tlsServerName: undefined }],
    [
      { server: "https://other:1", tlsServerName: "name" },
      { server: "https://other:1", tlsServerName: "name" },
    ],
    [{ tlsServerName: "name" }, { tlsServerName: "name" }],
    [{ insecureSkipTLSVerify: true }, { insecureSkipTLSVerify: true, certificateAuthority: undefined }],
    [{ certificateAuthority: "/ca.crt" }, { certificateAuthority: { file: "/ca.crt" } }],
    [{ server: "http://other" }, { server: "http://other", tlsServerName: undefined, user: {} }],
    [{ server: "127.0.0.1:8080" }, { server: "http://127.0.0.1:8080", tlsServerName: undefined, user: {} }],
  ])("%j", (overrides, changed) => {
    expect(applyOverrides(entries, overrides)).toEqual({ ...entries, ...changed });
  });

  it("an authority makes a cluster that was not verified so again", () => {
    const open = { ...entries, certificateAuthority: undefined, insecureSkipTLSVerify: true };
    expect(applyOverrides(open, { certificateAuthority: "/ca.crt" })).toEqual({
      ...entries,
      certificateAuthority: { file: "/ca.crt" },
    });
  });

  it.each([
    [{ token: "t" }, { token: "t", tokenFile: undefined }],
    [{ username: "joe" }, { basic: { username: "joe", password: "old" } }],
    [{ password: "new" }, { basic: { username: "jane", password: "new" } }],
    [
      { clientCertificate: "/c", clientKey: "/k" },
      { clientCertificate: { file: "/c" }, clientKey: { file: "/k" } },
    ],
    [
      { impersonate: { user: "eve" } },
      { impersonate: { user: "eve", uid: "1", groups: ["dev"], extra: { a: ["1"] } } },
    ],
    [
      { impersonate: { user: "eve", uid: "2", groups: ["ops"], extra: { b: ["2"] } } },
      { impersonate: { user: "eve", uid: "2", groups: ["ops"], extra: { a: ["1"], b: ["2"] } } },
    ],
  ])("of the user: %j", (overrides, changed) => {
    expect(applyOverrides(entries, overrides).user).toEqual({ ...entries.user, ...changed });
  });
});
