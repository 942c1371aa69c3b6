import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { describeReal, kubectls, programOf } from "../support/real-parts.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";
import { TWO_NODES } from "../support/two-nodes.ts";

const run = promisify(execFile);

/** A web terminal's way: the page's own connection is HTTP/2, and the browser opens the exec on a stream of it. */
describeReal("chromium", "exec from a browser, over HTTP/2", () => {
  let gateway: TestGateway;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    gateway = await startTestGateway(TWO_NODES);
    browser = await chromium.launch({
      executablePath: programOf("chromium"),
      // As root in a container there is no sandbox to be had.
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
    });
    page = await browser.newPage({ ignoreHTTPSErrors: true });
    // Asked for without a token: who is not known gets a GOAWAY with the 401.
    await page.route("**/favicon.ico", (route) => route.abort());
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
  });

  const execScript = (prefix: string, pod: string): string => `new Promise((resolve, reject) => {
    const query = new URLSearchParams([["command", "sh"], ["command", "-c"], ["command", "cat; exit 7"]]);
    const url = "wss://" + location.host + "${prefix}/api/v1/namespaces/default/pods/${pod}/exec?" + query +
      "&stdin=true&stdout=true&stderr=true";
    const token = btoa("${gateway.token}").replaceAll("=", "");
    const bearer = "base64url.bearer.authorization.k8s.io." + token;
    const socket = new WebSocket(url, [bearer, "v5.channel.k8s.io"]);
    socket.binaryType = "arraybuffer";
    const bytes = new TextEncoder().encode("typed in a browser\\n");
    const channels = ["", "", "", ""];
    socket.onerror = () => reject(new Error("the WebSocket failed"));
    socket.onopen = () => {
      socket.send(new Uint8Array([0, ...bytes]));
      socket.send(new Uint8Array([255, 0]));
    };
    socket.onmessage = ({ data }) => {
      const message = new Uint8Array(data);
      channels[message[0]] += new TextDecoder().decode(message.subarray(1));
    };
    socket.onclose = ({ code, wasClean }) =>
      resolve({ protocol: socket.protocol, stdout: channels[1], status: channels[3], code, wasClean });
  })`;

  it.each([
    ["the API leg", "web"],
    ["the API leg", "web-ws"],
    ["the front door", "web"],
    ["the front door", "web-ws"],
  ])("at %s, in %s", async (where, pod) => {
    const isDoor = where === "the front door";
    const prefix = isDoor ? "/clusters/own" : "";
    await page.goto(`${isDoor ? gateway.ingressUrl : gateway.apiServerUrl}${prefix}/version`);
    const protocol = await page.evaluate('performance.getEntriesByType("navigation")[0].nextHopProtocol');
    expect(protocol).toBe("h2");
    const events = await page.context().newCDPSession(page);
    await events.send("Network.enable");
    const statuses: number[] = [];
    events.on("Network.webSocketHandshakeResponseReceived", ({ response }) => statuses.push(response.status));
    const result = await page.evaluate(execScript(prefix, pod));
    expect(result).toMatchObject({
      protocol: "v5.channel.k8s.io",
      stdout: "typed in a browser\n",
      code: 1000,
      wasClean: true,
    });
    expect((result as { status: string }).status).toContain('"7"');
    // It would be 101 over HTTP/1.1.
    expect(statuses).toEqual([200]);
  });
});

/** Go's client asks for HTTP/2 wherever it does not upgrade. */
describeReal("kubectl", "kubectl at a listener that speaks HTTP/2", () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway(TWO_NODES);
  });
  afterAll(() => gateway?.stop());

  it.each(kubectls())("$version: get over HTTP/2, exec beside it", async ({ path: kubectl }) => {
    const base = ["--kubeconfig", gateway.kubeconfig];
    const { stdout, stderr } = await run(kubectl, [...base, "get", "pods", "-v", "8"]);
    expect(stdout).toContain("web-ws");
    expect(stderr).not.toContain("HTTP/1.1");
    for (const pod of ["web", "web-ws"]) {
      const { stdout: said } = await run(kubectl, [...base, "exec", pod, "--", "echo", "hello"]);
      expect(said).toBe("hello\n");
      await expect(run(kubectl, [...base, "exec", pod, "--", "sh", "-c", "exit 9"])).rejects.toMatchObject({
        code: 9,
      });
    }
  });
});
