import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, expect, inject, it } from "vitest";
import { sluiceCommand } from "../support/built-program.ts";
import { eventually } from "../support/eventually.ts";
import { collect } from "../support/kubectl.ts";
import { describeReal } from "../support/real-parts.ts";
import { type ServedGateway, serveGateway } from "../support/served-gateway.ts";
import { gatewayConfiguration } from "./door-configurations.ts";
import { allowGateway } from "./doors.ts";
import { ChartedCluster, IMAGE } from "./kubernetes/charted-cluster.ts";
import { subjectOf, TOKENS, type TokenUser } from "./kubernetes/credentials.ts";
import { pod } from "./kubernetes/objects.ts";
import { balanceService, type ServiceBalancer } from "./kubernetes/service-balancer.ts";
import { ServiceEndpoints } from "./kubernetes/service-endpoints.ts";
import { applyObjects, type ClusterAddresses } from "./kubernetes/start-cluster.ts";

const run = promisify(execFile);
const SHELL = ["exec", "-i", "web", "-c", "main", "--", "sh", "-c", "echo ready; exec cat"];
const FORBIDDEN = 'User "vera" cannot list resource "streamingsessions" in API group "sluice.dev"';

/** kubectl as one user at one server. */
class Caller {
  static readonly started: ChildProcess[] = [];
  readonly #program: string;
  readonly #target: readonly string[];

  constructor(program: string, ...target: readonly string[]) {
    this.#program = program;
    this.#target = target;
  }

  async run(...words: readonly string[]): Promise<string> {
    return (await run(this.#program, [...this.#target, ...words], { maxBuffer: 2 ** 28 })).stdout;
  }

  start(words: readonly string[], env: Readonly<Record<string, string>> = {}) {
    const child = spawn(this.#program, [...this.#target, ...words], { env: { ...process.env, ...env } });
    Caller.started.push(child);
    const [output, problem] = [collect(child.stdout as Readable), collect(child.stderr as Readable)];
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    const says = (text: string): Promise<unknown> =>
      eventually(
        () => `${JSON.stringify(text)} of ${words.join(" ")}: ${output()}${problem()}`,
        () => output().includes(text),
      );
    return { child, says, problem, ended };
  }
}

afterEach(() => {
  for (const child of Caller.started.splice(0)) child.kill("SIGKILL");
});

/** A shell that `opener` runs is seen, and ended, by `moderator`. Resolves to its name. */
async function endShell(
  opener: Caller,
  moderator: Caller,
  moderatorName: string,
  { plan, env }: { readonly plan: string; readonly env?: Record<string, string> },
): Promise<string> {
  const watch = moderator.start(["get", "sess", "-w", "--output-watch-events"]);
  const shell = opener.start(SHELL, env);
  await shell.says("ready");
  const named = await moderator.run("get", "streamingsessions", "-o", "name");
  const [, name = ""] = /^streamingsession\.sluice\.dev\/(\S+)\n$/.exec(named) ?? [];
  const table = await moderator.run("get", "streamingsessions", "-A");
  expect(table).toMatch(/^NAMESPACE +NAME +POD +CONTAINER +SUBRESOURCE +USER +AGE\n/);
  expect(table).toMatch(new RegExp(`default +${name} +web +main +exec +dave +\\d+s\\n`));
  const yaml = await moderator.run("get", "streamingsession", name, "-o", "yaml");
  expect(yaml).toContain("kind: StreamingSession");
  expect(yaml).toContain("exec cat");
  expect(yaml).toContain(`  plan: ${plan}\n`);
  expect(await moderator.run("describe", "streamingsession", name)).toContain("Subresource:  exec");
  await watch.says(name);
  const deletedMs = performance.now();
  expect(await moderator.run("delete", "streamingsession", name)).toContain(`"${name}" deleted`);
  expect(await shell.ended).toBe(1);
  expect(shell.problem()).toContain(`error: the session was ended by ${moderatorName}\n`);
  // kubectl's own start is the most of it.
  expect(performance.now() - deletedMs).toBeLessThan(10_000);
  await watch.says("DELETED");
  return name;
}

async function expectRecording(moderator: Caller, name: string): Promise<void> {
  await eventually("it is recorded", async () =>
    (await moderator.run("get", "recordings", "-o", "name")).includes(`recording.sluice.dev/${name}\n`),
  );
  expect(await moderator.run("get", "recordings")).toMatch(new RegExp(`${name} +web +main +exec +dave `));
  const recording = JSON.parse(await moderator.run("get", "recording", name, "-o", "json"));
  expect(recording).toMatchObject({ kind: "Recording", status: { gaps: 0, outputBytes: 6 } });
  const content = `/apis/sluice.dev/v1alpha1/namespaces/default/recordings/${name}/content`;
  expect(await moderator.run("get", "--raw", content)).toContain('"o", "ready\\n"]');
}

const RECORDING = { rules: [{ name: "all", recordOnFailure: "refuse" }] };

describeReal("cluster", "sessions that kubectl sees and ends through the gateway", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  let folder: string;
  let gateway: ServedGateway | undefined;
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-sessions-"));
  });
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** kubectl's users at a gateway that takes the kubelet for one of this mode, and records. */
  const serve = async (mode: string): Promise<(user: TokenUser) => Caller> => {
    const given = gatewayConfiguration(cluster, "gateway") as { readonly kubelet: object };
    const kubelet = { ...given.kubelet, streaming: { mode } };
    const recording = { ...RECORDING, folder: path.join(folder, `recordings-${mode}`) };
    const file = path.join(folder, `${mode}.json`);
    writeFileSync(file, JSON.stringify({ ...given, kubelet, recording }));
    await allowGateway(cluster, file, subjectOf("sluice"));
    gateway = await serveGateway(file);
    const target = [
      ...["--kubeconfig", "/dev/null", "--cache-dir", path.join(folder, mode)],
      ...["--server", `https://${gateway.authority}`],
      ...["--certificate-authority", path.join(cluster.credentials, "ca.crt")],
    ];
    const program = path.join(cluster.programs, "kubectl");
    return (user) => new Caller(program, ...target, "--token", TOKENS[user].token);
  };

  it.each([
    ["auto", "pass-through", "pass-through"],
    ["spdy", "translate", "pass-through"],
    ["websocket-only", "pass-through", "bridge"],
  ])("in mode %s: WebSocket by %s, SPDY by %s", async (mode, ofWebSocket, ofSpdy) => {
    const as = await serve(mode);
    const [dave, admin] = [as("dev"), as("admin")];
    await endShell(dave, admin, TOKENS.admin.user, { plan: ofWebSocket });
    const overSpdy = { plan: ofSpdy, env: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: "false" } };
    const name = await endShell(dave, admin, TOKENS.admin.user, overSpdy);
    await expectRecording(admin, name);
    await expect(as("viewer").run("get", "streamingsessions")).rejects.toThrow(FORBIDDEN);
  });
});

describeReal(
  ["cluster", "helm"],
  "sessions at the cluster's own API server, by the chart's APIService",
  () => {
    const NAMESPACE = "api-service";
    let charted: ChartedCluster;
    let cluster: ClusterAddresses;
    let endpoints: ServiceEndpoints;
    let service: ServiceBalancer;
    let address = "";
    let as: (user: TokenUser) => Caller;
    let administrator: Caller;
    let throughGateway: Caller;

    beforeAll(async () => {
      cluster = inject("cluster") as ClusterAddresses;
      charted = await ChartedCluster.create(cluster);
      await charted.importImage();
      await charted.createNamespace(NAMESPACE, "restricted");
      const set = {
        "image.repository": IMAGE,
        "gateway.apiService.enabled": "true",
        "gateway.replicaCount": "1",
        "gateway.resources.requests.cpu": "10m",
        "gateway.config.workers": "1",
        "gateway.extraVolumes[0].name": "recordings",
        "gateway.extraVolumes[0].emptyDir.sizeLimit": "1Gi",
        "gateway.extraVolumeMounts[0].name": "recordings",
        "gateway.extraVolumeMounts[0].mountPath": "/var/lib/recordings",
        "gateway.config.recording.folder": "/var/lib/recordings",
        "gateway.config.recording.rules[0].name": "all",
        "gateway.config.recording.rules[0].recordOnFailure": "refuse",
      };
      await charted.helm(
        ...["install", "sluice", "sluice-0.1.0.tgz", "--namespace", NAMESPACE, "--wait", "--timeout", "120s"],
        ...[
          "--set",
          Object.entries(set)
            .map((pair) => pair.join("="))
            .join(","),
        ],
      );
      const service_ = ["-n", NAMESPACE, "get", "service", "sluice-gateway", "-o"];
      address = await charted.kubectl(...service_, "jsonpath={.spec.clusterIP}");
      // What kube-proxy does on the API server's machine.
      await run("ip", ["address", "add", `${address}/32`, "dev", "lo"]);
      endpoints = await ServiceEndpoints.follow(cluster.adminKubeconfig);
      const own = { host: address, port: 443 };
      service = await balanceService(endpoints, [NAMESPACE, "sluice-gateway", 6443], own);
      const available = ["--for=condition=Available", "apiservice/v1alpha1.sluice.dev", "--timeout=60s"];
      await charted.kubectl("wait", ...available);
      // The user's own cache may know this address from a cluster without the group.
      const cache = ["--cache-dir", path.join(charted.folder, "cache")];
      const target = (server: string) => [
        ...["--kubeconfig", "/dev/null", ...cache],
        ...["--server", server, "--insecure-skip-tls-verify"],
      ];
      const program = charted.kubectlProgram;
      as = (user) => new Caller(program, ...target(cluster.url), "--token", TOKENS[user].token);
      administrator = new Caller(program, "--kubeconfig", cluster.adminKubeconfig, ...cache);
      // An API server lists the resources of an available server a little later. This reads past the cache, and fills it.
      await eventually("the API server lists the group", async () => {
        // It fails, too, while any other group's server is not available.
        const listed = await administrator.run("api-resources", "--api-group", "sluice.dev").catch(() => "");
        return listed.includes("sess");
      });
      throughGateway = new Caller(program, ...target(`https://${address}`), "--token", TOKENS.dev.token);
    }, 300_000);
    afterEach(async ({ task }) => {
      if (task.result?.state === "fail") console.error(await stateOfGateway());
    });
    /** What tells a gateway that is busy, gone or out of reach from one that refuses: the pod's process is one of this machine. */
    const stateOfGateway = async (): Promise<string> => {
      const ofPod = ["-n", NAMESPACE, "get", "pods", "-l", "app.kubernetes.io/component=gateway", "-o"];
      const podAddress = await charted.kubectl(...ofPod, "jsonpath={.items[0].status.podIP}");
      const times =
        "%{http_code} %{errormsg}: connected after %{time_connect} s, TLS after %{time_appconnect} s\\n";
      const asked = [`${podAddress}:6443`, address].map(
        (host) => `echo ${host}; curl -skm 15 -o /dev/null -w '${times}' https://${host}/readyz`,
      );
      const processes = "ps -eo pid,stat,pcpu,time,args --sort=-pcpu | head -n 15";
      const script = [
        ...asked,
        processes,
        `ip neigh show ${podAddress}`,
        "ip -brief link show type veth",
        "true",
      ].join("; ");
      return [
        // Another pod with the same address would answer for it.
        await charted.kubectl("get", "pods", "--all-namespaces", "-o", "wide"),
        await charted.kubectl("-n", NAMESPACE, "logs", "deployment/sluice-gateway", "--tail=30"),
        `the balancer's failures: ${JSON.stringify(service.failures)}`,
        (await run("sh", ["-c", script])).stdout,
      ].join("\n");
    };
    afterAll(async () => {
      await charted.helm("uninstall", "sluice", "--namespace", NAMESPACE, "--ignore-not-found");
      await service?.close();
      await endpoints?.close();
      if (address !== "") await run("ip", ["address", "del", `${address}/32`, "dev", "lo"]);
      await charted.remove(NAMESPACE);
    }, 120_000);

    it("are listed, watched and ended there, as the user who asks", async () => {
      const name = await endShell(throughGateway, administrator, subjectOf("admin"), {
        plan: "pass-through",
      });
      await expectRecording(administrator, name);
      await expect(as("viewer").run("get", "streamingsessions")).rejects.toThrow(FORBIDDEN);
    });

    it("are viewed and joined there, too", async () => {
      const shell = throughGateway.start(SHELL);
      await shell.says("ready");
      const named = await administrator.run("get", "streamingsessions", "-o", "name");
      const name = named.trim().replace(/^.*\//, "");
      const [program, words] = sluiceCommand("sessions");
      const sluice = (verb: string) =>
        new Caller(program, ...words, verb, name, "--kubeconfig", cluster.adminKubeconfig).start([]);
      const [viewer, joiner] = [sluice("watch"), sluice("join")];
      joiner.child.stdin?.write("typed by another\n");
      for (const { says } of [shell, viewer, joiner]) await says("typed by another\n");
      shell.child.stdin?.end();
      expect([await shell.ended, shell.problem()]).toEqual([0, ""]);
      expect(await Promise.all([viewer.ended, joiner.ended])).toEqual([0, 0]);
    });

    it("keep their recordings when their namespace is deleted", async () => {
      const doomed = ["-n", "doomed"];
      await charted.kubectl("create", "namespace", "doomed");
      const { spec } = pod("web", [{ name: "main", command: ["sleep", "infinity"] }]) as { spec: object };
      const own = { apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "doomed" }, spec };
      await applyObjects(charted.kubectlProgram, cluster.adminKubeconfig, [own]);
      await charted.kubectl(...doomed, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s");
      await charted.kubectl(...doomed, "create", "rolebinding", "dave", "--clusterrole=admin", "--user=dave");
      expect(await throughGateway.run(...doomed, "exec", "web", "--", "echo", "ready")).toBe("ready\n");
      const recordings = () => administrator.run(...doomed, "get", "recordings", "-o", "name");
      await eventually("it is recorded", async () => (await recordings()).includes("recording.sluice.dev/"));
      await charted.kubectl("delete", "namespace", "doomed", "--timeout=60s");
      expect(await recordings()).toContain("recording.sluice.dev/");
    });

    it("are one group of the API server and of the gateway, beside all others", async () => {
      for (const caller of [administrator, throughGateway]) {
        const { groups } = JSON.parse(await caller.run("get", "--raw", "/apis")) as {
          groups: { name: string }[];
        };
        expect(groups.map(({ name }) => name).filter((name) => name === "sluice.dev")).toHaveLength(1);
        expect(groups.length).toBeGreaterThan(10);
      }
      expect(await administrator.run("get", "--raw", "/openapi/v3/api/v1")).toContain("podIP");
      const log = await administrator.run("-n", NAMESPACE, "logs", "deployment/sluice-gateway");
      expect(log).not.toMatch(/lacks permissions|could not be|"level":"error"/);
    });
  },
);
