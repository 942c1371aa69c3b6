import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { parse } from "yaml";
import { browserBundle } from "../support/browser-bundle.ts";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { describeReal, programOf } from "../support/real-parts.ts";

/** The page comes from an origin of its own, as a console's does: its browser says so in each WebSocket's `Origin`. */
describeReal("chromium", "@sluice/client/browser in Chromium", () => {
  let demo: RunningDemo;
  let server: Server;
  let browser: Browser;
  let page: Page;
  let cluster: { url: string; token: string };

  beforeAll(async () => {
    const bundle = await browserBundle();
    demo = await startDemo();
    const { clusters, users } = parse(readFileSync(demo.kubeconfig, "utf8"));
    cluster = { url: clusters[0].cluster.server, token: users[0].user.token };
    server = createServer(({ url }, response) => {
      response.setHeader("Content-Type", url === "/" ? "text/html" : "text/javascript");
      response.end(url === "/" ? "<!doctype html><title>console</title>" : bundle);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    browser = await chromium.launch({
      executablePath: programOf("chromium"),
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
    });
    page = await browser.newPage({ ignoreHTTPSErrors: true });
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  }, 90_000);

  afterAll(async () => {
    await browser?.close();
    server?.close();
    await demo?.stop();
  });

  /** Runs one of the example's functions in the page; an error is its name and text. */
  function inPage(call: string, token = cluster.token): Promise<unknown> {
    const at = JSON.stringify({ url: cluster.url, token });
    return page.evaluate(`(async () => {
      const { run, join, get } = await import("/bundle.mjs");
      const cluster = ${at};
      const leaving = new AbortController();
      const shown = [];
      const show = (text) => shown.push(text);
      const end = await ${call}.catch((error) => String(error));
      return { shown: shown.join(""), end };
    })()`);
  }

  it("runs a command with input to its end, and gives its exit code", async () => {
    const call = 'run(cluster, "web", ["sh", "-c", "wc -c; echo done; exit 3"], "x".repeat(3_000_000), show)';
    expect(await inPage(call)).toEqual({ shown: expect.stringMatching(/^\s*3000000\ndone\n$/), end: 3 });
  });

  it("gets an output of 16 MiB whole", async () => {
    const call = `run(cluster, "web", ["head", "-c", "16777216", "/dev/zero"], "", (text) => {
      shown[0] = String(Number(shown[0] ?? 0) + text.length);
    })`;
    expect(await inPage(call)).toEqual({ shown: "16777216", end: 0 });
  });

  it("says a text to the main process, hears it, and leaves", async () => {
    const call = `join(cluster, "web", "a line\\n", (text) => { show(text); leaving.abort(); }, leaving.signal)`;
    expect(await inPage(call)).toEqual({ shown: "a line\n", end: "SessionError: context canceled" });
  });

  it("reads a page from a port", async () => {
    expect(await inPage('get(cluster, "web", 80, "/")')).toEqual({
      shown: "",
      end: expect.stringMatching(/^HTTP\/1\.[01] 200 .*Hello from pod web/s),
    });
  });

  it("gets the reason of a port that nothing listens on", async () => {
    expect(await inPage('get(cluster, "web", 81, "/")')).toEqual({
      shown: "",
      end: expect.stringMatching(/^SessionError: .*81/),
    });
  });

  it("fails with a wrong token", async () => {
    expect(await inPage('run(cluster, "web", ["ls"], "", show)', "wrong")).toEqual({
      shown: "",
      end: "ConnectError: the WebSocket did not open; its page is not told why",
    });
  });
});
