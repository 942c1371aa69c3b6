import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import { SessionError } from "../../packages/client/src/index.ts";
import { htmlReport } from "../../packages/lab/src/load/html-report.ts";
import { LoadCollector } from "../../packages/lab/src/load/load-report.ts";
import { Recorder } from "../../packages/lab/src/load/recorder.ts";
import { loadPlan } from "../support/load-plan.ts";
import { describeReal } from "../support/real-parts.ts";
import { findProgram } from "../support/real-parts-finder.ts";

const plan = loadPlan({ path: "/secret-path" });

describeReal("chromium", "the page of a load report", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-report-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("draws itself, asks no server for anything, and runs nothing that a server said", async () => {
    const file = path.join(folder, "report.html");
    writeFileSync(file, await htmlReport(reportOfThreeSeconds()));
    const executablePath = findProgram(
      ["chromium", "chromium-browser", "google-chrome"],
      ["--version"],
      /(\d+\.\d+\.\d+)/,
    )?.path;
    const browser = await chromium.launch({
      args: ["--no-sandbox"],
      ...(executablePath !== undefined && { executablePath }),
    });
    try {
      const page = await browser.newPage();
      const requests: string[] = [];
      const problems: string[] = [];
      page.on("request", (request) => requests.push(request.url()));
      page.on("pageerror", (error) => problems.push(error.message));
      page.on("console", (message) => problems.push(message.text()));
      page.on("dialog", (dialog) => problems.push(`a dialog: ${dialog.message()}`));
      await page.goto(pathToFileURL(file).href);
      await page.waitForSelector("body[data-drawn=yes]");
      expect(await page.locator("canvas").count()).toBe(4);
      expect(await page.locator("td").allTextContents()).toContain("</script><img src=x onerror=alert(1)>");
      expect(problems).toEqual([]);
      expect(requests).toEqual([pathToFileURL(file).href]);
      expect(await page.content()).not.toContain("secret-path");
    } finally {
      await browser.close();
    }
  });
});

function reportOfThreeSeconds() {
  const collector = new LoadCollector(plan, 1, Date.now());
  const recorder = new Recorder();
  for (let second = 0; second < 3; second++) {
    for (let ms = 1; ms < 200; ms++) recorder.latency("message", ms / 10);
    recorder.latency("firstByte", 30 + second);
    recorder.counts.sentBytes += 1_000_000;
    recorder.error(new SessionError("connection-lost", "</script><img src=x onerror=alert(1)>"));
    collector.add(recorder.interval(second, { untilMs: (second + 1) * 1_000, cpuShare: 0.1, lagMs: 1 }));
  }
  return collector.report(false);
}
