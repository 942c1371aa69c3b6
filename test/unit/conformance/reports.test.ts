import { describe, expect, it } from "vitest";
import { adviceFor } from "../../../packages/lab/src/conformance/advice.ts";
import { ALL_CASES } from "../../../packages/lab/src/conformance/all-cases.ts";
import {
  type CaseReport,
  type ConformanceReport,
  compareWith,
  comparisonText,
  junitReport,
  parseReport,
} from "../../../packages/lab/src/conformance/conformance-report.ts";
import { conformancePage, textReport } from "../../../packages/lab/src/conformance/report-texts.ts";

const EVIL = '</script><img src=x onerror=alert(1)>"&\u0000\ud800';

const one = (id: string, changed: Partial<CaseReport> = {}): CaseReport => ({
  ...{ id, group: "exec", requirement: `${id} works.`, why: "Users notice.", source: "RFC 6455" },
  ...{ severity: "must", verdict: "passed", durationMs: 12 },
  ...changed,
});

function reportOf(cases: readonly CaseReport[]): ConformanceReport {
  const count = (verdict: string) => cases.filter((each) => each.verdict === verdict).length;
  return {
    ...{ version: 1, endpoint: "https://hop", profile: "api-server", startedAt: "2026-01-01T00:00:00Z" },
    durationMs: 1_500,
    counts: { passed: count("passed"), failed: count("failed"), skipped: count("skipped") },
    cases,
  };
}

const mixed = reportOf([
  one("exec/a"),
  one("exec/b", { verdict: "failed", note: EVIL }),
  one("exec/c", { verdict: "failed", severity: "should", note: "late" }),
  one("idle/d", { verdict: "skipped", group: "idle", note: "no cat" }),
]);

describe("the table", () => {
  it("counts by group, and shows what failed with its reason and source", () => {
    const text = textReport(mixed);
    expect(text).toContain(
      "group  passed  failed  skipped\nexec        1       2        0\nidle        0       0        1\n",
    );
    expect(text).toContain("exec/c (should)\n  exec/c works.\n  observed: late\n  source: RFC 6455\n");
    expect(text).toContain("https://hop: 1 passed, 2 failed, 1 skipped in 1.5 s\n");
  });

  it("begins with what was not tried at all, and with nothing where everything was", () => {
    const untried = (id: string, group: "exec" | "idle", note: string) =>
      one(id, { group, verdict: "skipped", note });
    expect(textReport(mixed)).toMatch(/^Not tried at all\n {2}idle: no cat\n\ngroup/);
    expect(textReport(reportOf([one("exec/a")]))).toMatch(/^group/);
    const nothing = reportOf([untried("exec/a", "exec", "refused"), untried("idle/d", "idle", "refused")]);
    expect(textReport(nothing)).toMatch(/^NOTHING COULD BE TRIED\n {2}exec, idle: refused\n\ngroup/);
  });

  it("has a line for each observation, whatever a hop answered, and for each reason of skipped cases", () => {
    const page = `414: <html>\n<head></head>\n${"x".repeat(1_000)}`;
    const text = textReport(
      reportOf([
        one("exec/a", { verdict: "failed", note: page }),
        one("exec/b", { verdict: "skipped", note: "no cat" }),
        one("exec/c", { verdict: "skipped", note: "no cat" }),
      ]),
    );
    expect(text).toMatch(/^ {2}observed: 414: <html> <head><\/head> x{200,300}…$/m);
    expect(text).toContain("Cases that were skipped, by reason\n  2: no cat\n");
  });

  it("names each advice once, and where its settings are", () => {
    const text = textReport(mixed);
    expect(text).toContain("How to mend a hop; --html FILE has the settings");
    expect(text.match(/Leave the stream alone \(2 cases\)\n {4}What is inside/g)).toHaveLength(1);
    expect(textReport(reportOf([one("exec/a")]))).not.toContain("How to mend");
  });
});

describe("JUnit's XML", () => {
  const xml = junitReport(mixed);

  it("fails only what must pass", () => {
    expect(xml).toContain('<testsuite name="exec" tests="3" failures="1" skipped="1" time="0.036">');
    expect(xml).toContain('<testcase classname="sluice.conformance.exec" name="exec/a" time="0.012"/>');
    expect(xml.match(/<failure /g)).toHaveLength(1);
    expect(xml).toContain('<skipped message="failed (should): late"/>');
    expect(xml).toContain('<skipped message="no cat"/>');
  });

  it("carries nothing that XML cannot", () => {
    expect(xml).not.toContain("<img");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    expect(xml).not.toMatch(/[\u0000-\u0008\ud800-\udfff]/);
    expect(xml).toContain("&#60;/script&#62;&#60;img");
  });
});

describe("the page", () => {
  it("shows failures, why they matter, and each advice once; nothing of a server is markup", () => {
    const page = conformancePage(mixed);
    expect(page).toContain('<b class="failed">2 failed</b>');
    expect(page).toContain("Users notice.");
    expect(page.match(/<h3>Leave the stream alone<\/h3>/g)).toHaveLength(1);
    expect(page).toContain("for exec/b, exec/c");
    expect(page).not.toContain("<img");
    expect(page).not.toMatch(/<\w[^>]*\s(?:src|href)=|url\(|<script/);
  });

  it("says so where nothing failed", () => {
    const page = conformancePage(reportOf([one("exec/a")]));
    expect(page).toContain("<p>Nothing.</p>");
    expect(page).not.toContain("How to mend it");
  });

  it("has settings for each product, for whatever fails", () => {
    for (const each of ALL_CASES) {
      expect(Object.keys(adviceFor(each).settings)).toEqual(
        expect.arrayContaining(["nginx", "HAProxy", "Envoy", "Traefik", "cloud load balancers"]),
      );
    }
  });
});

describe("a baseline", () => {
  const before = reportOf([
    one("exec/a", { verdict: "failed" }),
    one("exec/b"),
    one("exec/c", { verdict: "failed" }),
    one("exec/d"),
    one("exec/gone"),
  ]);
  const now = reportOf([
    one("exec/a"),
    one("exec/b", { verdict: "failed", note: "now" }),
    one("exec/c", { verdict: "failed" }),
    one("exec/d", { verdict: "skipped", note: "refused" }),
    one("exec/new", { verdict: "failed" }),
    one("exec/new-skipped", { verdict: "skipped" }),
  ]);

  it("tells what broke, what is mended, and what is no longer tried", () => {
    const { broken, mended, lost } = compareWith(before, now);
    expect(broken.map(({ id }) => id)).toEqual(["exec/b", "exec/new"]);
    expect(mended.map(({ id }) => id)).toEqual(["exec/a"]);
    expect(lost.map(({ id }) => id)).toEqual(["exec/d"]);
    expect(comparisonText(compareWith(before, now))).toContain("  broken  exec/b (must): now\n");
    expect(comparisonText(compareWith(before, before))).toContain("  nothing changed\n");
  });

  it("is a report of --json", () => {
    expect(parseReport(JSON.stringify(now))).toEqual(now);
    for (const text of [
      "null",
      "{}",
      '{"version":1}',
      '{"version":1,"cases":[null]}',
      '{"version":2,"cases":[]}',
    ])
      expect(() => parseReport(text)).toThrow("is not a report of sluice conformance --json");
  });
});

describe("the settings of nginx, HAProxy and Envoy", () => {
  it.each([
    "nginx",
    "HAProxy",
    "Envoy",
  ])("can be pasted into %s: each has a place, or is a comment", (product) => {
    for (const { settings } of new Set(ALL_CASES.map(adviceFor))) {
      const lines = (settings[product] ?? "").split("\n");
      const isPasted = lines.some((line) => !line.startsWith("#"));
      if (isPasted) expect(lines[0]).toMatch(/^# in /);
    }
  });
});

describe("the cases", () => {
  it("have ids of their own, that begin with their group", () => {
    expect(new Set(ALL_CASES.map(({ id }) => id)).size).toBe(ALL_CASES.length);
    for (const { id, group } of ALL_CASES) expect(id.split("/")[0]).toBe(group);
  });

  it("state a requirement, a reason and a source", () => {
    for (const { requirement, why, source } of ALL_CASES) {
      expect(requirement).toMatch(/^[A-Za-z"0-9].*\.$/);
      expect(why).toMatch(/\.$/);
      expect(source.length).toBeGreaterThan(5);
    }
  });
});
