import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
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

  it("understands the queries of the dashboards", () => {
    const expressions = readdirSync(dashboards).flatMap((file) => {
      const { panels } = JSON.parse(readFileSync(path.join(dashboards, file), "utf8")) as {
        panels: readonly { targets: readonly { expr: string }[] }[];
      };
      return panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    });
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
});
