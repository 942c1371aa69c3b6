import { describe, expect, it } from "vitest";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

function read(egressProxy: object) {
  const configuration = {
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    kubelet: { egressProxy },
  };
  return parseConfiguration(JSON.stringify(configuration), "/f/f.json").kubelet.egressProxy;
}

describe("kubelet.egressProxy", () => {
  it.each([
    "http://proxy:3128",
    "https://10.0.0.1:8131",
    "unix:///run/konnectivity.sock",
  ])("is at %s", (url) => {
    expect(read({ url, credentialsFile: "secret" })).toEqual({
      url,
      certificateAuthorityFile: undefined,
      insecureSkipTLSVerify: false,
      clientCertificateFile: undefined,
      clientKeyFile: undefined,
      credentialsFile: "/f/secret",
    });
  });

  it.each([
    [{}, /kubelet\.egressProxy\.url: is required/],
    [{ url: "socks5://proxy:1080" }, /url: must be http:\/\/host:port/],
    [{ url: "proxy:3128" }, /url: must be http:\/\/host:port/],
    [{ url: "https://proxy:8131/path" }, /url: must be http:\/\/host:port/],
    [{ url: "unix://relative" }, /url: must be http:\/\/host:port/],
    [{ url: "http://u:p@proxy:1" }, /url: must not hold credentials; use credentialsFile/],
    [{ url: "http://proxy:1", token: "x" }, /token: unknown field/],
  ])("%j is refused", (section, message) => {
    expect(() => read(section)).toThrow(message);
  });
});
