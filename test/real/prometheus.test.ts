import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { parse } from "yaml";
import { eventually } from "../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../support/front-door.ts";
import { freePorts } from "../support/http/loopback.ts";
import { describeReal, programOf } from "../support/real-parts.ts";
import { endExec, SUCCESS } from "../support/scripted-kubelet.ts";
import { WorkerGateway } from "../support/worker-gateway.ts";

const folder = fileURLToPath(new URL("../../deploy/prometheus/", import.meta.url));

const dashboards = fileURLToPath(new URL("../../deploy/grafana/", import.meta.url));

/** Names of Kubernetes and Node.js, which promtool's linter would not have. */
const GIVEN = /^(apiserver_|kubelet_|prober_|num_ws_|nodejs_|process_)/;

describeReal("promtool", "Prometheus", () => {
  let gateway: WorkerGateway | undefined;
  afterEach(() => gateway?.stop());

  const promtool = (arguments_: readonly string[], input?: string) => {
    const { status, stdout, stderr } = spawnSync(programOf("promtool"), arguments_, {
      cwd: folder,
      input,
      encoding: "utf8",
    });
    return { status, output: `${stdout}${stderr}` };
  };

  it("takes the rules", () => {
    expect(promtool(["check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"])).toMatchObject({
      status: 0,
    });
  });

  it("understands the queries of the dashboards and of the autoscalers", () => {
    const expressions = [...queries().map(({ expr }) => expr), ...autoscalerQueries()];
    const scratch = mkdtempSync(path.join(tmpdir(), "sluice-dashboards-"));
    try {
      const rules = expressions.map((expr, index) => ({
        record: `query_${index}`,
        expr: expr.replaceAll("$__rate_interval", "5m"),
      }));
      const file = path.join(scratch, "queries.yaml");
      writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboards", rules }] }));
      expect(promtool(["check", "rules", file]).output).toContain(
        `SUCCESS: ${expressions.length} rules found`,
      );
    } finally {
      rmSync(scratch, { recursive: true });
    }
  });

  it("fires each alert for its series, and stays silent for the others", () => {
    const { status, output } = promtool(["test", "rules", "rules-test.yaml"]);
    expect(output).toContain("SUCCESS");
    expect(status).toBe(0);
  });

  it.each([
    1, 2,
  ])("reads a scrape of %s processes, and finds nothing wrong with our names", async (workers) => {
    gateway = await WorkerGateway.start({
      script: { onData: (_, __, ___, session) => endExec(session, SUCCESS) },
      workers,
    });
    const client = gateway.exec();
    await client.opened;
    client.send(0, "go");
    await client.done;
    const { output } = promtool(["check", "metrics"], await gateway.admin("/metrics"));
    expect(output).not.toContain("error while linting");
    const ours = output.split("\n").filter((line) => line !== "" && !GIVEN.test(line));
    expect(ours).toEqual([]);
  });

  it("returns data for the panels, and traces as exemplars, from a real Prometheus that scrapes a gateway", async () => {
    const program = path.join(path.dirname(programOf("promtool")), "prometheus");
    if (!existsSync(program)) return;
    // Port 1: no collector is there, and none is needed.
    const tracing = { endpoint: "http://127.0.0.1:1/v1/traces", samplePercent: 100, timeout: "100ms" };
    const door = await FrontDoor.start([], {}, { tracing });
    const scratch = mkdtempSync(path.join(tmpdir(), "sluice-prometheus-"));
    const pod = await door.addPod("app");
    door.write([...serviceObjects("app", [pod]), ingressObject("shop", { defaultBackend: backend("app") })]);
    await door.serves(1);
    const target = new URL(door.gateway.adminUrl).host;
    const scrape = { job_name: "sluice", scrape_interval: "1s", static_configs: [{ targets: [target] }] };
    const file = path.join(scratch, "prometheus.yml");
    const rules = [path.join(folder, "rules.yaml")];
    writeFileSync(
      file,
      JSON.stringify({ global: { evaluation_interval: "1s" }, rule_files: rules, scrape_configs: [scrape] }),
    );
    const [port = 0] = await freePorts(1);
    const child = spawn(
      program,
      [
        `--config.file=${file}`,
        `--storage.tsdb.path=${scratch}/data`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--enable-feature=exemplar-storage",
      ],
      { stdio: "ignore" },
    );
    const exited = once(child, "exit");
    const ask = async (expr: string): Promise<{ status: string; data?: { result: unknown[] } }> => {
      const query = expr.replaceAll("$__rate_interval", "30s").replace(/\$(job|instance)/g, ".*");
      const response = await fetch(
        `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(query)}`,
      );
      return (await response.json()) as { status: string; data?: { result: unknown[] } };
    };
    try {
      await eventually(
        "rates by Ingress",
        async () => {
          await fetch(`http://127.0.0.1:${door.httpPort}/`).then((response) => response.text());
          const { data } = await ask('rate(sluice_ingress_route_requests_total{service="app"}[30s]) > 0');
          return (data?.result.length ?? 0) > 0;
        },
        { timeoutMs: 60_000, intervalMs: 250 },
      );
      const query = "query=sluice_ingress_request_duration_seconds_bucket&start=0&end=9999999999";
      const exemplars = await fetch(`http://127.0.0.1:${port}/api/v1/query_exemplars?${query}`);
      expect(await exemplars.text()).toMatch(/"status":"success".*"trace_id":"[0-9a-f]{32}"/);
      const empty: string[] = [];
      for (const { title, expr } of queries()) {
        const { status, data } = await ask(expr);
        expect([title, status]).toEqual([title, "success"]);
        if (data?.result.length === 0) empty.push(title);
      }
      const filled = [
        "Releases",
        "Draining",
        "Front door: requests",
        "Requests by Ingress and Service",
        "Time to respond by Ingress and Service, 99 %",
        "Ingresses in force",
      ];
      expect(filled.filter((title) => empty.includes(title))).toEqual([]);
    } finally {
      child.kill();
      await exited;
      await door.stop();
      rmSync(scratch, { recursive: true });
    }
  }, 120_000);
});

function queries(): { readonly title: string; readonly expr: string }[] {
  return readdirSync(dashboards).flatMap((file) => {
    const { panels } = JSON.parse(readFileSync(path.join(dashboards, file), "utf8")) as {
      panels: readonly { title: string; targets: readonly { expr: string }[] }[];
    };
    return panels.flatMap(({ title, targets }) => targets.map(({ expr }) => ({ title, expr })));
  });
}

/** What deploy/autoscaling has Prometheus asked, with the parts that prometheus-adapter sets. */
function autoscalerQueries(): string[] {
  const read = (name: string) =>
    parse(readFileSync(new URL(`../../deploy/autoscaling/${name}`, import.meta.url), "utf8"));
  const [rule] = read("prometheus-adapter.yaml").rules.custom;
  const asked = {
    Series: "sluice_streaming_active_sessions",
    LabelMatchers: 'namespace="sluice",pod=~"a|b"',
    GroupBy: "pod",
  };
  const ofAdapter = Object.entries(asked).reduce(
    (query, [name, value]) => query.replace(`<<.${name}>>`, value),
    rule.metricsQuery,
  );
  const [trigger] = read("keda.yaml").spec.triggers;
  return [rule.seriesQuery, ofAdapter, trigger.metadata.query];
}
