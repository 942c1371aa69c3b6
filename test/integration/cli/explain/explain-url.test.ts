import { afterEach, describe, expect, it, vi } from "vitest";
import { runCommand } from "../../../../src/cli/command-line.ts";
import { backend, INGRESS_CLASS, ingressObject } from "../../../support/front-door.ts";
import { GatewayFiles } from "../../../support/gateway-files.ts";

let files: GatewayFiles | undefined;
afterEach(() => {
  vi.restoreAllMocks();
  files?.remove();
});

async function explain(listeners: object, ...args: string[]) {
  const at = (path: string, service: object) => ({ path, pathType: "Prefix", backend: service });
  const streaming = { resource: { apiGroup: "sluice.dev", kind: "StreamingGateway", name: "a" } };
  files = new GatewayFiles({
    listeners,
    manifests: [
      INGRESS_CLASS,
      ingressObject(
        "shop",
        {
          rules: [
            {
              host: "shop.example.com",
              http: { paths: [at("/cart(/|$)(.*)", backend("cart")), at("/clusters/a", streaming)] },
            },
          ],
        },
        { annotations: { "nginx.ingress.kubernetes.io/rewrite-target": "/$2" } },
      ),
      ingressObject(
        "sticky",
        { rules: [{ host: "sticky.example.com", http: { paths: [at("/", backend("web"))] } }] },
        { annotations: { "nginx.ingress.kubernetes.io/affinity": "cookie" } },
      ),
      ingressObject(
        "secure",
        { rules: [{ host: "secure.example.com", http: { paths: [at("/", backend("web"))] } }] },
        { annotations: { "sluice.dev/tls-redirect": "true" } },
      ),
      ingressObject("plain", {
        rules: [{ host: "*.example.com", http: { paths: [at("/", backend("web", "http"))] } }],
      }),
    ],
  });
  let [out, err] = ["", ""];
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    out += String(text);
    return true;
  });
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    err += String(text);
    return true;
  });
  const code = await runCommand("explain", ["--config", files.configurationFile, ...args]);
  return { code, out, err };
}

const door = { apiServer: { port: 0 }, ingress: { httpPort: 0, httpsPort: 0 } };

describe("sluice explain of a URL", () => {
  it.each([
    [
      "https://shop.example.com/cart/a%2Fb?q=/cart",
      "Ingress default/shop\nService cart, port 8080\npath /a%2Fb?q=/cart in place of /cart/a%2Fb?q=/cart\n",
    ],
    [
      "https://shop.example.com/clusters/a/version",
      "Ingress default/shop\nStreamingGateway a\npath /version in place of /clusters/a/version\n",
    ],
    [
      "http://sticky.example.com/x",
      "Ingress default/sticky\nService web, port 8080\npath /x, as it came\nsession cookie INGRESSCOOKIE, balanced\n",
    ],
    [
      "http://Secure.example.com/x?y",
      "Ingress default/secure\nredirected with 308 to https://secure.example.com/x?y\n",
    ],
    [
      "https://secure.example.com/x?y",
      "Ingress default/secure\nService web, port 8080\npath /x?y, as it came\n",
    ],
    ["http://web.example.com", "Ingress default/plain\nService web, port http\npath /, as it came\n"],
  ])("%s shows its Ingress, backend and path", async (url, expected) => {
    expect(await explain(door, url)).toEqual({ code: 0, out: expected, err: "" });
  });

  it.each([
    ["https://shop.example.com/other", "refused with 404: no rule matches this host and path\n"],
    ["https://shop.example.com/../x", "refused with 400: malformed request target\n"],
    ["https:///x", "refused with 400: malformed Host header\n"],
  ])("%s is refused", async (url, out) => {
    expect(await explain(door, url)).toEqual({ code: 1, out, err: "" });
  });

  it("needs an ingress listener, and no flags of sessions", async () => {
    const without = explain({ apiServer: { port: 0 } }, "http://a.example.com/");
    await expect(without).rejects.toThrow("a URL needs listeners.ingress");
    files?.remove();
    const flagged = explain(door, "http://a.example.com/", "--user", "jane");
    await expect(flagged).rejects.toThrow("--user does not apply to a URL");
  });
});
