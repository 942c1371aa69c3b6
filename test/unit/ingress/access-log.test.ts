import { mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, expect, it } from "vitest";
import { AccessLog, type ExchangeEnd } from "../../../src/ingress/ingress-context.ts";
import { EdgeRules } from "../../../src/listeners/edge-rules.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedBound } from "../../support/fixed-bound.ts";

const MAX_QUEUED_LINES = fixedBound("src/ingress/ingress-context.ts", "MAX_QUEUED_LINES");

const folder = mkdtempSync(path.join(tmpdir(), "sluice-access-log-"));
const open: AccessLog[] = [];

afterEach(async () => {
  for (const log of open.splice(0)) await log.stop();
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function accessLog(file: string) {
  const counts = { stored: 0, lost: 0 };
  const problems: unknown[] = [];
  const logger = { error: (fields: object) => void problems.push(fields) };
  const log = new AccessLog({
    path: path.join(folder, file),
    edge: new EdgeRules({ trustedProxies: ["192.0.2.1"], allowedOrigins: [] }),
    metrics: {
      accessLogged: (result, count) => {
        counts[result] += count;
      },
    },
    logger: logger as never,
  });
  open.push(log);
  return { log, counts, problems, lines: () => linesOf(file) };
}

function linesOf(file: string): Record<string, unknown>[] {
  const text = readFileSync(path.join(folder, file), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

function exchange(more: Partial<ExchangeEnd> = {}): ExchangeEnd {
  return {
    startedMs: performance.now(),
    isTls: true,
    remoteAddress: "198.51.100.7",
    protocol: "h2",
    method: "GET",
    target: "/",
    headers: [["host", "a.example"]],
    route: undefined,
    status: 200,
    responseBytes: 0,
    ...more,
  };
}

it("cuts what clients make long, and shows no query, no credentials and no foreign word about the client", async () => {
  const { log, counts, lines } = accessLog("cut.log");
  const headers = [
    ["Host", `a.example${"x".repeat(5_000)}`],
    ["Authorization", "Bearer s3cret"],
    ["Cookie", "a=s3cret"],
    ["Referer", "https://x/?s3cret"],
    ["User-Agent", "u\n".repeat(5_000)],
    ["X-Forwarded-For", "203.0.113.9"],
  ] as const;
  log.write(exchange({ headers, target: `/${"p".repeat(5_000)}?command=s3cret` }));
  log.write(
    exchange({ headers, target: "http://user:s3cret@a.example/path?s3cret", remoteAddress: "192.0.2.1" }),
  );
  await eventually("two lines", () => counts.stored === 2);
  const [first, second] = lines();
  expect([first?.["host"], first?.["path"], first?.["userAgent"]].map((text) => String(text).length)).toEqual(
    [1_024, 1_024, 1_024],
  );
  expect(first?.["client"]).toBe("198.51.100.7");
  expect(second).toMatchObject({ client: "203.0.113.9", path: "/path" });
  expect(JSON.stringify([first, second])).not.toContain("s3cret");
});

it("past the bound loses lines, counts them, and writes again when the file can be written", async () => {
  const { log, counts, problems } = accessLog("no-such-folder/a.log");
  for (let sent = 0; sent < MAX_QUEUED_LINES + 5; sent += 1) log.write(exchange());
  expect(counts.lost).toBe(5);
  await eventually("a problem", () => problems.length > 0);
  expect(problems[0]).toMatchObject({ problem: expect.stringContaining("ENOENT") });
});

it("opens the file anew after it was renamed", async () => {
  const { log, counts } = accessLog("turn.log");
  log.write(exchange({ method: "GET" }));
  await eventually("a line", () => counts.stored === 1);
  renameSync(path.join(folder, "turn.log"), path.join(folder, "turn.log.1"));
  await log.reopen();
  log.write(exchange({ method: "PUT" }));
  await eventually("another line", () => counts.stored === 2);
  expect(linesOf("turn.log.1").map(({ method }) => method)).toEqual(["GET"]);
  expect(linesOf("turn.log").map(({ method }) => method)).toEqual(["PUT"]);
});

it("writes what waits when it stops", async () => {
  const { log, lines } = accessLog("stop.log");
  log.write(exchange());
  await log.stop();
  expect(lines()).toHaveLength(1);
});
