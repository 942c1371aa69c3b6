import path from "node:path";
import { expect, it } from "vitest";
import { describeReal } from "../support/real-parts.ts";
import { CHART, helm, type Rendered, renderChart } from "../support/rendered-chart.ts";

const ALONE = ["--set", "gateway.enabled=false,load.enabled=true"];
const TOKEN = "--token-file=/var/run/secrets/kubernetes.io/serviceaccount/token";
const KUBECONFIG = "--kubeconfig=/etc/sluice-load/kubeconfig";

describeReal("helm", "a load by the chart", () => {
  it("is an Indexed Job whose pods meet the restricted standard, and may open streams alone", () => {
    const objects = renderChart("--values", path.join(CHART, "ci/load-values.yaml"));
    expect(objects.map(({ kind }) => kind)).toEqual(["ServiceAccount", "Role", "RoleBinding", "Job"]);
    expect(objects[1]?.rules).toEqual([
      {
        apiGroups: [""],
        resources: ["pods/exec", "pods/attach", "pods/portforward"],
        verbs: ["get", "create"],
      },
    ]);
    expect(objects[3]?.spec).toMatchObject({
      completionMode: "Indexed",
      completions: 3,
      parallelism: 3,
      backoffLimitPerIndex: 0,
    });
    const pod = objects[3]?.spec?.template.spec;
    expect(pod).toMatchObject({
      serviceAccountName: "s-sluice-load",
      restartPolicy: "Never",
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
      volumes: [{ name: "files", secret: { secretName: "gateway-authority", optional: false } }],
    });
    expect(pod?.containers[0]?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(argumentsOf(objects)).toEqual([
      ...["load", "--part=$(JOB_COMPLETION_INDEX)/3", "--json=-", "--seed=1", TOKEN, "exec", "web"],
      ...["--sessions=300", "--duration=2m", "--server=https://sluice-gateway.sluice.svc"],
      "--certificate-authority=/etc/sluice-load/ca.crt",
    ]);
  });

  it.each([
    [
      ["exec", "web"],
      ["--seed=1", KUBECONFIG],
    ],
    [["exec", "web", "--kubeconfig=/etc/sluice-load/other", "--seed", "7"], []],
    [["exec", "web", "--server", "https://gw", "--token-file=/etc/sluice-load/token"], ["--seed=1"]],
    [
      ["exec", "web", "--", "sh", "-c", 'echo "$1" --server', "--token"],
      ["--seed=1", KUBECONFIG],
    ],
  ])("with %j adds %j", (given, added) => {
    const set = ["--set-json", `load.arguments=${JSON.stringify(given)}`];
    expect(argumentsOf(renderChart(...ALONE, ...set)).slice(3)).toEqual([...added, ...given]);
  });

  it("is another Job where the load is another one, for Jobs are immutable", () => {
    const nameOf = (...set: readonly string[]): string =>
      jobIn(renderChart(...ALONE, "--set", ["load.arguments={exec,web}", ...set].join()))?.metadata.name ??
      "";
    expect(nameOf()).toMatch(/^s-sluice-load-[0-9a-f]{8}$/);
    expect(nameOf("networkPolicy.enabled=true")).toBe(nameOf());
    const others = ["load.parts=3", "load.arguments={exec,api}", "image.tag=next", "load.podLabels.team=a"];
    expect(new Set([nameOf(), ...others.map((set) => nameOf(set))]).size).toBe(5);
  });

  it.each([
    ["load.parts=2", "load.arguments is required, such as [exec, web, --sessions=100]"],
    ["load.arguments={http,/}", "load.arguments: http is not for a job"],
    ["load.arguments={exec,web,--token=t}", "load.arguments: --token is not for the pods of a job"],
    ["load.arguments={exec,web,--start-at,+1m}", "--start-at needs a time"],
    ["load.arguments={exec,web,--start-at=+1m}", "--start-at needs a time"],
    ["load.arguments=exec", "at '/load/arguments': got string, want array"],
  ])("refuses %s, and says why", (value, message) => {
    const { status, stderr } = helm("template", "s", CHART, ...ALONE, "--set", value);
    expect(stderr).toContain(message);
    expect(status).not.toBe(0);
  });
});

const jobIn = (objects: readonly Rendered[]) => objects.find(({ kind }) => kind === "Job");

function argumentsOf(objects: readonly Rendered[]): readonly string[] {
  return jobIn(objects)?.spec?.template.spec.containers[0]?.args ?? [];
}
