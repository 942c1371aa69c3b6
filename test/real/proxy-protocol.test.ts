import { writeFileSync } from "node:fs";
import { request } from "node:https";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type EchoedRequest, type EchoPod, startEchoPod } from "../support/echo-service.ts";
import { eventually } from "../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../support/front-door.ts";
import { type Layer7Proxy, startProxy } from "../support/layer7-proxies.ts";
import { describeReal } from "../support/real-parts.ts";

/** Where HAProxy's connections come from, so that its address is another than its clients'. */
const PROXY = "127.0.0.9";
const CLIENT = "127.0.0.5";

describeReal(["haproxy"], "HAProxy's PROXY protocol", () => {
  const proxies: Layer7Proxy[] = [];
  let door: FrontDoor;
  let pod: EchoPod;

  beforeAll(async () => {
    pod = await startEchoPod("app", "app-1");
    door = await FrontDoor.start(
      [...serviceObjects("app", [pod]), ingressObject("app", { defaultBackend: backend("app") })],
      { proxyProtocol: { from: [PROXY] } },
    );
    await door.serves(1);
  });

  afterAll(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    await door.stop();
    await pod.stop();
  });

  async function startHaproxy(bind: string, server: string): Promise<Layer7Proxy> {
    const proxy = await startProxy((folder, port) => {
      const file = path.join(folder, "haproxy.cfg");
      const lines = [
        "defaults",
        "  mode tcp",
        "  timeout connect 5s",
        "  timeout client 1m",
        "  timeout server 1m",
        "frontend front",
        `  bind 127.0.0.1:${port} ${bind.replace("FOLDER", folder)}`,
        "  default_backend back",
        "backend back",
        `  source ${PROXY}`,
        `  server gateway 127.0.0.1:${server}`,
      ];
      writeFileSync(file, `${lines.join("\n")}\n`);
      return ["haproxy", "-db", "-f", file];
    });
    proxies.push(proxy);
    return proxy;
  }

  function ask(url: string): Promise<EchoedRequest> {
    return new Promise((resolve, reject) => {
      request(url, { localAddress: CLIENT, rejectUnauthorized: false, agent: false }, async (response) => {
        resolve(JSON.parse(await text(response)) as EchoedRequest);
      })
        .on("error", reject)
        .end();
    });
  }

  const checked = "check check-send-proxy inter 100ms";
  it.each([
    ["version 1, TLS passed through", "", () => `${door.httpsPort} send-proxy ${checked}`],
    ["version 2, TLS passed through", "", () => `${door.httpsPort} send-proxy-v2 ${checked}`],
    [
      "version 2 with a checksum of HAProxy's",
      "",
      () => `${door.httpsPort} send-proxy-v2 proxy-v2-options crc32c,authority ${checked}`,
    ],
    [
      "version 2 with what HAProxy says of the TLS that it ends",
      "ssl crt FOLDER/tls.pem",
      () => `${door.httpPort} send-proxy-v2-ssl-cn ${checked}`,
    ],
  ])("%s: the client's address reaches the backend", async (_which, bind, server) => {
    const { url } = await startHaproxy(bind, server());
    const echoed = await ask(`${url}/x`);
    expect(echoed.headers["X-Forwarded-For"]).toEqual([CLIENT]);
  });

  it("without it HAProxy's connections are closed, and the log says why", async () => {
    const before = await startHaproxy("ssl crt FOLDER/tls.pem", `${door.httpPort}`);
    await expect(ask(`${before.url}/x`)).rejects.toThrow();
    await eventually("the log", () => door.logged.some((line) => line.includes("proxy-header-missing")));
  });
});
