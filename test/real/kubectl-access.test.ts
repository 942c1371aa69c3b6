import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { get } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { evidenceTable } from "../support/evidence-table.ts";
import { collect, KubectlRunner } from "../support/kubectl.ts";
import { clusterRole, clusterRoleBinding, resourceRule } from "../support/rbac-objects.ts";
import { describeReal, kubectls } from "../support/real-parts.ts";
import type { Kubectl } from "../support/real-parts-finder.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

const isWritingDocs = process.env.SLUICE_WRITE_DOCS === "1";
const DOCS = new URL("../../docs/evidence/kubectl-access.md", import.meta.url);
/** The same sentence in each cell would make the table unreadable. */
const SHORT_WORDS: readonly (readonly [RegExp, string])[] = [
  [/^.*is forbidden: User "[a-z]+" cannot (\w+) resource "([^"]+)".*$/, "403 $1"],
];
const streams = "pods/exec,pods/attach,pods/portforward";
const manifests = [
  clusterRole("viewer", resourceRule("get,list,watch||pods"), resourceRule(`get||${streams}`)),
  clusterRole("operator", resourceRule("get,list,watch||pods"), resourceRule(`get,create||${streams}`)),
  clusterRoleBinding("viewers", "ClusterRole/viewer", "User:viewer"),
  clusterRoleBinding("operators", "ClusterRole/operator", "User:operator"),
];
const people = ["viewer", "operator", "outsider"] as const;
type Person = (typeof people)[number];
const actions = ["exec", "attach", "port-forward"] as const;
type Action = (typeof actions)[number];

/** Which transports a release comes by, and how it is told to. */
const transports = [
  { name: "WebSocket", value: "true" },
  { name: "SPDY", value: "false" },
] as const;

/** `works`, or what kubectl printed. */
async function attempt(runner: KubectlRunner, action: Action, webSockets: string): Promise<string> {
  const env = {
    KUBECTL_REMOTE_COMMAND_WEBSOCKETS: webSockets,
    KUBECTL_PORT_FORWARD_WEBSOCKETS: webSockets,
  };
  if (action === "exec") {
    const command = ["exec", "web", "-c", "main", "--", "echo", "it works"];
    const { exitCode, stdout, stderr } = await runner.run(command, { env });
    return exitCode === 0 && stdout === "it works\n" ? "works" : told(stderr);
  }
  const command =
    action === "attach"
      ? ["attach", "-i", "web", "-c", "main"]
      : ["port-forward", "--address", "127.0.0.1", "pod/web", ":80"];
  const child = runner.start(command, env);
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  const closed = once(child, "close");
  child.stdin.on("error", () => {});
  if (action === "attach") child.stdin.write("it works\n");
  try {
    return await eventually(
      () => `${action} ends; stdout: ${stdout()}; stderr: ${stderr()}`,
      async () => {
        if (child.exitCode !== null) return told(stderr());
        if (action === "attach") return stdout().includes("it works") && "works";
        const port = /127\.0\.0\.1:(\d+) ->/.exec(stdout())?.[1];
        return port !== undefined && (await statusOf(Number(port))) === 200 && "works";
      },
      { timeoutMs: 20_000, intervalMs: 50 },
    );
  } finally {
    child.kill("SIGKILL");
    await closed;
  }
}

function statusOf(port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = get({ host: "127.0.0.1", port, agent: false, timeout: 10_000 }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on("timeout", () => request.destroy(new Error("no answer")));
    request.on("error", reject);
  });
}

function told(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => /error|forbidden/i.test(line));
  return lines.join(" ").trim() || stderr.trim();
}

/** Over a WebSocket only where the release knows them; the wish is ignored elsewhere. */
function isWebSocket(kubectl: Kubectl, action: Action, webSockets: string): boolean {
  return webSockets === "true" && kubectl.minor >= (action === "port-forward" ? 30 : 29);
}

const subresourceOf = { exec: "exec", attach: "attach", "port-forward": "portforward" } as const;

/**
 * What kubectl must say. A viewer who comes by WebSocket is refused by the synthetic check; kubectl then tries SPDY, whose POST
 * says `create` in full. With the gate off the GET alone is enough, as it was before Kubernetes 1.35.
 */
function expected(person: Person, kubectl: Kubectl, action: Action, webSockets: string, isGateOn: boolean) {
  if (person === "operator") return /^works$/;
  if (person === "viewer" && !isGateOn && isWebSocket(kubectl, action, webSockets)) return /^works$/;
  if (person === "outsider" && action !== "port-forward") {
    // It may not even look at the pod.
    return /pods "web" is forbidden: User "outsider" cannot get resource "pods" in API group "" in the namespace "default"/;
  }
  if (person === "outsider") return /pods "web" is forbidden: User "outsider" cannot/;
  const resource = `pods/${subresourceOf[action]}`;
  return new RegExp(
    `pods "web" is forbidden: User "viewer" cannot create resource "${resource}" in API group`,
  );
}

describeReal("kubectl", "who may stream, asked by real kubectls", () => {
  const tables: string[] = [];
  afterAll(() => {
    if (isWritingDocs) writeFileSync(DOCS, page(tables));
  });
  for (const isGateOn of [true, false]) {
    describe(`with the synthetic create check ${isGateOn ? "on" : "off"}`, () => {
      const rows: string[][] = [];
      let gateway: TestGateway;

      beforeAll(async () => {
        gateway = await startTestGateway({
          fakeNodes: [{}],
          users: people.map((name) => `token-${name},${name},${name}-uid`),
          manifests,
          configuration: {
            authorization: { mode: ["RBAC"] },
            featureGates: { AuthorizePodWebsocketUpgradeCreatePermission: isGateOn },
          },
        });
      });
      afterAll(async () => {
        await gateway?.stop();
        const columns = actions.flatMap((action) => transports.map(({ name }) => `${action}, ${name}`));
        const all = kubectls().map(({ version }) => version);
        const table = evidenceTable(["kubectl", "user", ...columns], rows, [0]).replaceAll(
          all.join(", "),
          "all",
        );
        tables.push(`## Synthetic check ${isGateOn ? "on" : "off"}\n\n${table}\n`);
      });

      for (const kubectl of kubectls()) {
        it.each(people)(`kubectl ${kubectl.version} as %s`, async (person) => {
          const runner = new KubectlRunner(kubectl, { kubeconfig: gateway.kubeconfigFor(`token-${person}`) });
          const cells: string[] = [];
          try {
            for (const action of actions) {
              for (const { value } of transports) {
                const answer = await attempt(runner, action, value);
                cells.push(SHORT_WORDS.reduce((text, [long, short]) => text.replace(long, short), answer));
                const where = `${action} with WebSocket ${value}`;
                expect({ where, answer }).toEqual({
                  where,
                  answer: expect.stringMatching(expected(person, kubectl, action, value, isGateOn)),
                });
              }
            }
          } finally {
            rows.push([kubectl.version, person, ...cells]);
            runner.remove();
          }
        });
      }
    });
  }
});

function page(tables: readonly string[]): string {
  return `# kubectl permissions

With the synthetic check, kubectl streams over WebSocket only with \`create\`, as over SPDY; without it, \`get\` is enough.

| user | may |
|---|---|
| viewer | get, list and watch pods; get their streaming subresources |
| operator | the same, and create streaming subresources |
| outsider | no permissions |

"403 VERB" names the verb that the user lacks. All: kubectl ${kubectls()
    .map(({ version }) => version)
    .join(
      ", ",
    )}. Columns say what kubectl was configured to use. Releases before 1.29 (port-forward: 1.30) always use
SPDY. kubectl retries a refused WebSocket over SPDY, whose POST needs \`create\`. Written by
\`SLUICE_WRITE_DOCS=1 npx vitest run test/real/kubectl-access\`.

${tables.join("\n")}`;
}
