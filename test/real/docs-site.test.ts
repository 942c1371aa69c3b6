import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { programOf, stateOf } from "../support/real-parts.ts";

const site = path.resolve(import.meta.dirname, "../../site");
const isInstalled = existsSync(path.join(site, "node_modules/vitepress/package.json"));
const hasBrowser = stateOf("chromium").missing === undefined;
const WIDTHS = [1280, 390] as const;

describe.skipIf(!isInstalled)("the docs site (needs npm ci --ignore-scripts in site)", () => {
  const out = mkdtempSync(path.join(tmpdir(), "sluice-site-"));
  let printed = "";
  let server: Server;

  beforeAll(async () => {
    const program = path.join(site, "node_modules/vitepress/bin/vitepress.js");
    const env = { ...process.env, SITE_OUT: out, GITHUB_REPOSITORY: "example/sluice" };
    const { status, stdout, stderr } = spawnSync(process.execPath, [program, "build", site], {
      env,
      encoding: "utf8",
    });
    printed = `${stdout}${stderr}`;
    expect({ status, printed }).toMatchObject({ status: 0 });
    server = createServer(({ url = "/" }, response) => {
      const name = new URL(url, "http://site").pathname;
      const file = ["", "index.html", ".html"].map((end) => path.join(out, `${name}${end}`)).find(isFile);
      if (file === undefined) {
        response.writeHead(404).end();
        return;
      }
      const types: Record<string, string> = {
        ".js": "text/javascript",
        ".css": "text/css",
        ".html": "text/html",
      };
      response.setHeader("Content-Type", types[path.extname(file)] ?? "application/octet-stream");
      response.end(readFileSync(file));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  }, 240_000);
  afterAll(() => {
    server?.closeAllConnections();
    server?.close();
    rmSync(out, { recursive: true, force: true });
  });

  it("has every document, and no page that could not be rendered", () => {
    const sources = readdirSync(path.resolve(site, "../docs")).filter((name) => name.endsWith(".md"));
    for (const name of sources) {
      const page = name === "README.md" ? "index.html" : name.replace(/\.md$/, ".html");
      expect(existsSync(path.join(out, "docs", page)), page).toBe(true);
    }
    expect(printed).not.toMatch(/Error: |dead link/);
    const page = readFileSync(path.join(out, "docs/behind-a-proxy.html"), "utf8");
    expect(page).toContain('href="https://github.com/example/sluice/blob/');
  });

  it.skipIf(!hasBrowser).each(WIDTHS)(
    "finds a page by its search, asks no other host, and fits %d pixels",
    async (width) => {
      const browser = await chromium.launch({
        executablePath: programOf("chromium"),
        args: ["--no-sandbox", "--disable-dev-shm-usage"],
      });
      try {
        const page = await browser.newPage({ viewport: { width, height: 800 } });
        const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
        const foreign: string[] = [];
        page.on("request", (request) => {
          if (!request.url().startsWith(origin) && !request.url().startsWith("data:"))
            foreign.push(request.url());
        });
        await page.goto(`${origin}/docs/`);
        await page.keyboard.press("Control+k");
        await page.locator("#localsearch-input").fill("rotate certificates");
        await page.locator("#localsearch-list a", { hasText: "Rotate certificates" }).first().waitFor();
        await page.keyboard.press("Escape");
        const folder = process.env.SLUICE_SCREENSHOTS;
        if (folder !== undefined) {
          mkdirSync(folder, { recursive: true });
          await page.screenshot({ path: path.join(folder, `site-${width}.png`) });
        }
        expect(await page.evaluate("document.documentElement.scrollWidth")).toBeLessThanOrEqual(width);
        expect(foreign).toEqual([]);
      } finally {
        await browser.close();
      }
    },
    60_000,
  );
});

function isFile(file: string): boolean {
  return existsSync(file) && path.extname(file) !== "";
}
