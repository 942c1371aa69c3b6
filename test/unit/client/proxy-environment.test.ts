import { describe, expect, it } from "vitest";
import { proxyFromEnvironment } from "../../../packages/client/src/target.ts";

const proxyOf = (url: string, environment: Record<string, string>) =>
  proxyFromEnvironment(new URL(url), environment)?.href;

describe("proxyFromEnvironment", () => {
  it.each([
    ["https://api:6443", { HTTPS_PROXY: "http://p:1" }, "http://p:1/"],
    ["https://api:6443", { https_proxy: "http://p:1" }, "http://p:1/"],
    ["https://api:6443", { HTTPS_PROXY: "http://upper:1", https_proxy: "http://lower:1" }, "http://upper:1/"],
    ["https://api:6443", { HTTP_PROXY: "http://p:1" }, undefined],
    ["http://api", { HTTP_PROXY: "http://p:1" }, "http://p:1/"],
    ["http://api", { HTTPS_PROXY: "http://p:1" }, undefined],
    ["https://api", { ALL_PROXY: "http://all:1" }, "http://all:1/"],
    ["https://api", { ALL_PROXY: "http://all:1", HTTPS_PROXY: "http://p:1" }, "http://p:1/"],
    ["https://api", { HTTPS_PROXY: "p:3128" }, "http://p:3128/"],
    ["https://api", { HTTPS_PROXY: "https://u:s@p:3128" }, "https://u:s@p:3128/"],
    ["https://localhost:6443", { HTTPS_PROXY: "http://p:1" }, undefined],
    ["https://127.0.0.1:6443", { HTTPS_PROXY: "http://p:1" }, undefined],
    ["https://[::1]:6443", { HTTPS_PROXY: "http://p:1" }, undefined],
    ["https://api", {}, undefined],
  ])("%s with %o: %s", (url, environment, expected) => {
    expect(proxyOf(url, environment as Record<string, string>)).toBe(expected);
  });

  it.each([
    ["example.com", "https://example.com", true],
    ["example.com", "https://api.example.com", true],
    ["example.com", "https://badexample.com", false],
    [".example.com", "https://example.com", false],
    [".example.com", "https://api.example.com", true],
    ["*.example.com", "https://example.com", false],
    ["*.example.com", "https://api.example.com", true],
    ["EXAMPLE.com", "https://api.example.COM", true],
    ["example.com:6443", "https://example.com:6443", true],
    ["example.com:6443", "https://example.com", false],
    ["example.com:443", "https://example.com", true],
    ["10.0.0.1", "https://10.0.0.1:6443", true],
    ["10.0.0.1:6443", "https://10.0.0.1:6443", true],
    ["10.0.0.1:80", "https://10.0.0.1:6443", false],
    ["10.0.0.0/8", "https://10.200.3.4", true],
    ["10.0.0.0/8", "https://11.0.0.1", false],
    ["10.0.0.0/99", "https://10.0.0.1", false],
    ["fd00::/8", "https://[fd00::1]", true],
    ["fd00::1", "https://[fd00::1]", true],
    ["[fd00::1]:443", "https://[fd00::1]", true],
    ["other, *", "https://api", true],
    [" , ,", "https://api", false],
    ["[2001:DB8:0::1]", "https://[2001:db8::1]", true],
    ["2001:db8:0::/48", "https://[2001:db8::1]", true],
    ["10.0.0.1", "https://[::ffff:10.0.0.1]", true],
    ["", "https://[::ffff:127.0.0.1]", true],
  ])("NO_PROXY=%s for %s: direct is %s", (noProxy, url, isDirect) => {
    const proxy = proxyOf(url, { HTTPS_PROXY: "http://p:1", NO_PROXY: noProxy });
    expect(proxy === undefined).toBe(isDirect);
  });

  it("refuses HTTP_PROXY in a CGI program, where a request header may have set it", () => {
    const environment = { HTTP_PROXY: "http://p:1", REQUEST_METHOD: "GET" };
    expect(() => proxyOf("http://api", environment)).toThrow("refusing to use HTTP_PROXY value in CGI");
  });

  it("does not repeat the credentials of a proxy that it cannot read", () => {
    const read = (proxy: string) => proxyOf("http://api", { HTTP_PROXY: proxy });
    expect(() => read("ftp://user:secret@p:1")).toThrow('invalid proxy address "ftp://xxxxx@p:1"');
    expect(() => read("http://a b")).toThrow("invalid proxy address");
  });
});
