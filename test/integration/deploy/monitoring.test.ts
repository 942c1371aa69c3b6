import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { MergedMetrics } from "../../../src/observability/merged-metrics.ts";
import { Metrics } from "../../../src/observability/metrics.ts";
import { builtProgram } from "../../support/built-program.ts";

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

const read = (file: string): string => readFileSync(new URL(`../../../${file}`, import.meta.url), "utf8");
const rules = (
  parse(read("deploy/prometheus/rules.yaml")) as { groups: readonly { rules: readonly Rule[] }[] }
).groups.flatMap((group) => group.rules);
/** Alertmanager and Grafana make a link of the annotation runbook_url alone, and only of a whole URL. */
const RUNBOOKS = `${JSON.parse(read("package.json")).homepage}/docs/runbooks`;
const alerts = rules.flatMap(({ alert }) => alert ?? []);

describe("the rules for Prometheus", () => {
  it("name only metrics that a scrape has, or that they record themselves", async () => {
    const known = await knownNames();
    for (const { alert, record, expr } of rules)
      expect(unknownNames(expr, known), alert ?? record).toEqual([]);
  });

  it("have a runbook for each alert, and no runbook more", () => {
    const headings = [...read("docs/runbooks.md").matchAll(/^## (\S+)$/gm)].map(([, name]) => name);
    expect(headings).toEqual(alerts);
    for (const { alert, annotations } of rules) {
      if (alert !== undefined) expect(annotations?.runbook_url).toBe(`${RUNBOOKS}#${alert.toLowerCase()}`);
    }
  });

  it("are loaded by what docs/monitoring.md says, from files that are there", () => {
    const page = read("docs/monitoring.md");
    expect(page).toContain(RUNBOOKS);
    const { monitoring } = parse(read("deploy/chart/values.yaml"));
    expect(monitoring.prometheusRule.runbookURL).toBe(RUNBOOKS);
    const named = [...page.matchAll(/\bdeploy\/[\w./-]+\w/g)].map(([file]) => file);
    expect(named).toEqual(
      expect.arrayContaining(["deploy/prometheus/rules.yaml", "deploy/chart/files/dashboards"]),
    );
    for (const file of named)
      expect(existsSync(new URL(`../../../${file}`, import.meta.url)), file).toBe(true);
    const { rule_files: loaded } = parse(read("deploy/docker/prometheus.yml")) as { rule_files: string[] };
    const { services, configs } = parse(read("docker-compose.yml")) as {
      services: { prometheus: { configs: { source: string; target: string }[] } };
      configs: Record<string, { file: string }>;
    };
    const mounted = services.prometheus.configs.find(({ target }) => loaded.includes(target));
    expect(configs[mounted?.source ?? ""]?.file).toBe("deploy/prometheus/rules.yaml");
  });

  it("are tested once firing and once silent", () => {
    const { tests } = parse(read("deploy/prometheus/rules-test.yaml")) as { tests: { name: string }[] };
    expect(tests.map(({ name }) => name)).toEqual(
      alerts.flatMap((alert) => [`${alert} fires`, `${alert} is silent`]),
    );
  });
});

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
}

describe("the dashboards for Grafana", () => {
  const folder = fileURLToPath(new URL("../../../deploy/grafana/", import.meta.url));

  it.each(
    readdirSync(folder),
  )("%s asks only for metrics that a scrape has, or that the rules record", async (file) => {
    const { uid, panels } = JSON.parse(read(`deploy/grafana/${file}`)) as Dashboard;
    expect(uid).toBe(`sluice-${file.replace(".json", "")}`);
    const known = await knownNames();
    for (const { title, targets } of panels) {
      for (const { expr } of targets) expect(unknownNames(expr, known), title).toEqual([]);
    }
  });

  it("are what their script writes", () => {
    const script = fileURLToPath(new URL("../../../scripts/build-dashboards.mjs", import.meta.url));
    const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(status).toBe(0);
  });
});

async function knownNames(): Promise<ReadonlySet<string>> {
  return new Set([...(await scrapedNames()), ...rules.flatMap(({ record }) => record ?? [])]);
}

function unknownNames(expression: string, known: ReadonlySet<string>): readonly string[] {
  return [...expression.matchAll(/\b(?:sluice|apiserver|kubelet|prober|nodejs|process|num_ws)_?[a-z0-9_:]+/g)]
    .map(([name]) => name)
    .filter((name) => !known.has(name));
}

/** Of a gateway with all of its listeners, and of a primary. */
async function scrapedNames(): Promise<readonly string[]> {
  const metrics = new Metrics();
  metrics.addKubelet();
  metrics.addQuotas(() => true);
  metrics.addReloads();
  const text = `${await metrics.expose()}\n${await new MergedMetrics().expose()}`;
  return [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = "", type]) =>
    type === "histogram" ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  );
}

describe("the chart's schema and table", () => {
  it("are what its values and the configuration say", () => {
    builtProgram();
    const script = fileURLToPath(new URL("../../../scripts/build-chart.mjs", import.meta.url));
    const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8" });
    expect(stderr).toBe("");
    expect(status).toBe(0);
  });
});
