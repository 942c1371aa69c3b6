import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { conformancePage } from "../../packages/lab/src/conformance/report-texts.ts";
import { htmlReport } from "../../packages/lab/src/load/html-report.ts";
import { LoadCollector } from "../../packages/lab/src/load/load-report.ts";
import { Recorder } from "../../packages/lab/src/load/recorder.ts";
import { judge, parseThreshold, SESSION_METRICS } from "../../packages/lab/src/load/thresholds.ts";
import { INDEX_PAGE, INDEX_PAGE_POLICY } from "../../src/admin/index-page.ts";
import { loadPlan } from "../support/load-plan.ts";
import { describeReal, programOf } from "../support/real-parts.ts";

/** As long as Kubernetes lets names of pods and nodes be. */
const LONG_NAME = `worker-${"a".repeat(243)}.io`;
const PATHS = {
  command: { successes: 3, failures: 1, lastFailure: "refused", retryInMs: 90_000 },
  tunnel: { successes: 0, failures: 0 },
};
const ANSWERS: Readonly<Record<string, unknown>> = {
  "/debug/sessions": [
    {
      subresource: "portforward",
      namespace: "default",
      pod: LONG_NAME,
      node: LONG_NAME,
      user: `system:serviceaccount:kube-system:${"b".repeat(60)}`,
      plan: { kind: "pass-through", reason: "node-declares-websocket" },
      startedAt: new Date().toISOString(),
      downstreamBytes: 5_000_000,
      upstreamBytes: 1,
    },
  ],
  "/debug/nodes": [
    {
      name: LONG_NAME,
      address: "10.0.0.1:10250",
      capability: { declaresWebSocket: true, mode: "auto", avoidedPaths: [] },
      learned: { circuit: { state: "open", reason: `connect ECONNREFUSED ${"9".repeat(80)}` }, paths: PATHS },
    },
  ],
};

/** The pages of this project, by name. The admin page's answers are as a busy gateway gives them. */
async function servePages(): Promise<Server> {
  const reports = new Map([
    ["/load", await loadPage()],
    ["/conformance", conformancePage(conformanceReport())],
  ]);
  const server = createServer(({ url = "" }, response) => {
    const report = reports.get(url);
    if (url === "/") response.setHeader("Content-Security-Policy", INDEX_PAGE_POLICY);
    if (report !== undefined || url === "/") response.setHeader("Content-Type", "text/html");
    if (url === "/debug/sessions") response.setHeader("Warning", `199 - "${LONG_NAME} does not answer"`);
    if (url.startsWith("/readyz")) response.end(`[+] cluster: ${"c".repeat(200)}\nreadyz check passed\n`);
    else response.end(url === "/" ? INDEX_PAGE : (report ?? JSON.stringify(ANSWERS[url])));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

function loadPage(): Promise<string> {
  const recorder = new Recorder();
  const collector = new LoadCollector(loadPlan({ path: "/p" }), 1, 0);
  for (let second = 0; second < 4; second++) {
    for (let ms = 1; ms < 200; ms++) recorder.latency("message", ms / 10);
    recorder.error(new Error(`read ECONNRESET ${"0123456789".repeat(20)}`));
    collector.add(recorder.interval(second, { untilMs: (second + 1) * 1_000, cpuShare: 0.1, lagMs: 1 }));
  }
  const report = collector.report(false);
  const thresholds = ["message_latency:p99<5ms", "failed<100"].map((text) =>
    parseThreshold(text, SESSION_METRICS),
  );
  return htmlReport({ ...report, thresholds: judge(report, thresholds) });
}

function conformanceReport() {
  const failed = {
    id: "errors/unknown-container/websocket",
    group: "errors",
    requirement: "An unknown container is 400.",
    why: "Scripts match on it.",
    source: "kubernetes/kubernetes pkg/registry/core/pod/strategy.go",
    severity: "must",
    verdict: "failed",
    note: `the body is not whole: {"kind":"Status","message":"${"d".repeat(300)}"}`,
    durationMs: 12,
  } as const;
  return {
    version: 1,
    endpoint: `https://${"e".repeat(60)}.example.com:6443`,
    profile: "api-server",
    startedAt: "2026-11-26T12:00:00Z",
    durationMs: 1_000,
    counts: { passed: 0, failed: 1, skipped: 0 },
    cases: [failed],
  } as const;
}

describeReal("chromium", "the pages at a desktop's and a phone's width", () => {
  let server: Server;
  let browser: Browser;

  beforeAll(async () => {
    server = await servePages();
    browser = await chromium.launch({
      executablePath: programOf("chromium"),
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
    });
  }, 60_000);
  afterAll(async () => {
    await browser?.close();
    server?.closeAllConnections();
    server?.close();
  });

  it.each([
    ["/", "#nodes-rows td", 1280],
    ["/", "#nodes-rows td", 390],
    ["/load", "body[data-drawn=yes]", 1280],
    ["/load", "body[data-drawn=yes]", 390],
    ["/conformance", "td", 1280],
    ["/conformance", "td", 390],
  ] as const)("%s shows %s and is not wider than %d pixels", async (name, shown, width) => {
    const page = await browser.newPage({ viewport: { width, height: 800 } });
    try {
      const { port } = server.address() as AddressInfo;
      await page.goto(`http://127.0.0.1:${port}${name}`);
      await page.waitForSelector(shown);
      const folder = process.env.SLUICE_SCREENSHOTS;
      if (folder !== undefined) {
        mkdirSync(folder, { recursive: true });
        const file = `${name === "/" ? "admin" : name.slice(1)}-${width}.png`;
        await page.screenshot({ path: path.join(folder, file), fullPage: true });
      }
      // A string, for the tests' types know no browser.
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
    } finally {
      await page.close();
    }
  });
});
