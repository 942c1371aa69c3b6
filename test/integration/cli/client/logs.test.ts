import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Sluice } from "../../../support/sluice.ts";

const POD = (name: string, containers: readonly string[], initContainers: readonly string[] = []) => ({
  kind: "Pod",
  metadata: { name, namespace: "shop", labels: { app: "web" } },
  spec: {
    initContainers: initContainers.map((container) => ({ name: container })),
    containers: containers.map((container) => ({ name: container })),
  },
  status: { phase: "Running" },
});
const PODS = [POD("one", ["main"]), POD("two", ["main", "side"], ["setup"])];
const DEPLOYMENT = { kind: "Deployment", spec: { selector: { matchLabels: { app: "web" } } } };

type Log = (response: ServerResponse, query: URLSearchParams, request: number) => void;

let folder: string;
let server: Server;
let sluice: Sluice;
let logs: Record<string, Log>;
let asked: string[];

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-logs-"));
  logs = {};
  asked = [];
  server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = path.join(folder, "config");
  const config = {
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "c", user: "u", namespace: "shop" } }],
    clusters: [{ name: "c", cluster: { server: url } }],
    users: [{ name: "u", user: {} }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  sluice = new Sluice({ KUBECONFIG: kubeconfig });
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(request.url ?? "", "http://server");
  const [, pod = "", isLog] = /^\/api\/v1\/namespaces\/shop\/pods\/([^/]+)(\/log)?$/.exec(pathname) ?? [];
  const name = `${pod}/${searchParams.get("container")}`;
  const found = PODS.find(({ metadata }) => metadata.name === pod);
  if (isLog !== undefined) {
    asked.push(`${name}?${searchParams}`);
    const nth = asked.filter((one) => one.startsWith(`${name}?`)).length;
    const log = logs[name] ?? (() => send(response, 404, failure("NotFound", `${name} not found`)));
    log(response, searchParams, nth);
  } else if (pathname.endsWith("/deployments/web")) send(response, 200, DEPLOYMENT);
  else if (pathname.endsWith("/pods")) {
    const items = searchParams.get("labelSelector") === "app=web" ? PODS : null;
    send(response, 200, { kind: "PodList", items });
  } else if (found !== undefined) send(response, 200, found);
  else send(response, 404, failure("NotFound", `pods "${pod}" not found`));
}

function failure(reason: string, message: string): object {
  return { kind: "Status", apiVersion: "v1", status: "Failure", reason, message };
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

const lineAt = (second: number, text: string) =>
  `2026-01-01T00:00:0${second}.${String(second).repeat(9)}Z ${text}\n`;

/** As a kubelet has them, of which an API server passes on whole seconds. */
function whole(lines: readonly string[]): Log {
  return (response, query) => {
    const since = query.get("sinceTime");
    const wanted = lines.filter((line) => since === null || line.slice(0, 19) >= since.slice(0, 19));
    const isStamped = query.get("timestamps") === "true";
    response.end(wanted.map((line) => (isStamped ? line : line.slice(31))).join(""));
  };
}

const LINES = [1, 2, 3].map((second) => lineAt(second, `line ${second}`));

it("prints a container's log, and asks for the container that kubectl would choose", async () => {
  logs["two/main"] = whole(LINES);
  expect(await sluice.run(["logs", "two"])).toEqual({
    exitCode: 0,
    stdout: "line 1\nline 2\nline 3\n",
    stderr: 'Defaulted container "main" out of: main, side, setup (init)\n',
  });
  expect(await sluice.run(["logs", "two", "main", "--timestamps"])).toEqual({
    exitCode: 0,
    stdout: LINES.join(""),
    stderr: "",
  });
});

it.each<[string, Log]>([
  [
    "behind a line",
    (response, query, nth) => {
      if (nth === 1) response.write(LINES.slice(0, 2).join(""), () => response.destroy());
      else whole(LINES)(response, query, nth);
    },
  ],
  [
    "within a line",
    (response, query, nth) => {
      if (nth === 1) response.write(LINES.join("").slice(0, 90), () => response.destroy());
      else whole(LINES)(response, query, nth);
    },
  ],
  [
    "again and again, and where the server is not there for a moment",
    (response, query, nth) => {
      if (nth === 1) response.write(LINES[0], () => response.destroy());
      else if (nth === 2) send(response, 503, failure("ServiceUnavailable", "starting"));
      else if (nth === 3) response.socket?.destroy();
      else if (nth === 4) response.write(LINES.slice(0, 2).join(""), () => response.destroy());
      else whole(LINES)(response, query, nth);
    },
  ],
])("goes on where the connection breaks off %s: no line lost or doubled", async (_where, log) => {
  logs["one/main"] = log;
  expect(await sluice.run(["logs", "-f", "one", "--tail=5"])).toEqual({
    exitCode: 0,
    stdout: "line 1\nline 2\nline 3\n",
    stderr: "",
  });
  expect(asked[0]).toContain("tailLines=5");
  expect(asked.at(-1)).not.toContain("tailLines");
  expect(asked.at(-1)).toContain("sinceTime=2026-01-01T00%3A00%3A0");
});

it("without times, or with a bound in bytes, what breaks off fails", async () => {
  logs["one/main"] = (response) => response.write("no time\n", () => response.destroy());
  for (const flags of [[], ["--limit-bytes=100"]]) {
    expect(await sluice.run(["logs", "one", ...flags])).toEqual({
      exitCode: 1,
      stdout: "no time\n",
      stderr: expect.stringMatching(/^Unable to connect to the server: (unexpected EOF|.*reset.*)\n$/),
    });
  }
  expect(asked).toEqual([
    "one/main?container=main&timestamps=true",
    "one/main?container=main&limitBytes=100",
  ]);
});

it("a refusal is the server's, and is not asked for again", async () => {
  logs["one/main"] = (response) =>
    send(response, 400, failure("BadRequest", "container is waiting to start"));
  expect(await sluice.run(["logs", "-f", "one"])).toEqual({
    exitCode: 1,
    stdout: "",
    stderr: "Error from server (BadRequest): container is waiting to start\n",
  });
  expect(asked).toHaveLength(1);
});

it("prints the logs of all containers of all pods that labels select", async () => {
  for (const name of ["one/main", "two/main", "two/side", "two/setup"]) {
    logs[name] = whole([lineAt(1, name)]);
  }
  expect(await sluice.run(["logs", "-l", "app=web", "--all-containers", "--prefix"])).toEqual({
    exitCode: 0,
    stdout:
      "[pod/one/main] one/main\n[pod/two/setup] two/setup\n[pod/two/main] two/main\n[pod/two/side] two/side\n",
    stderr: "",
  });
  expect(asked.every((one) => one.includes("tailLines=10"))).toBe(true);
  expect(await sluice.run(["logs", "deploy/web", "--all-pods", "-c", "main"])).toEqual({
    exitCode: 0,
    stdout: "[pod/one/main] one/main\n[pod/two/main] two/main\n",
    stderr: "",
  });
  expect(await sluice.run(["logs", "deploy/web", "-c", "main"])).toEqual({
    exitCode: 0,
    stdout: "one/main\n",
    stderr: "Found 2 pods, using pod/one\n",
  });
});

it("follows several side by side, up to a number", async () => {
  const held: (() => void)[] = [];
  // Each ends when both are followed.
  const together: Log = (response, query, nth) => {
    held.push(() => whole(LINES)(response, query, nth));
    if (held.length === 2) for (const release of held) release();
  };
  logs["one/main"] = together;
  logs["two/main"] = together;
  const { stdout, exitCode } = await sluice.run(["logs", "-f", "deploy/web", "--all-pods", "-c", "main"]);
  expect(exitCode).toBe(0);
  expect(stdout.split("\n").toSorted()).toEqual(
    ["", ...["one", "two"].flatMap((pod) => [1, 2, 3].map((n) => `[pod/${pod}/main] line ${n}`))].toSorted(),
  );
  const refused = await sluice.run([
    "logs",
    "-f",
    "-l",
    "app=web",
    "--all-containers",
    "--max-log-requests=3",
  ]);
  expect(refused).toEqual({
    exitCode: 1,
    stdout: "",
    stderr:
      "error: you are attempting to follow 4 log streams, but maximum allowed concurrency is 3, use --max-log-requests to increase the limit\n",
  });
});

it("--ignore-errors goes on with the other logs", async () => {
  logs["two/main"] = whole(LINES);
  const args = ["logs", "-l", "app=web", "-c", "main"];
  expect((await sluice.run(args)).exitCode).toBe(1);
  expect(await sluice.run([...args, "--ignore-errors"])).toEqual({
    exitCode: 0,
    stdout: "line 1\nline 2\nline 3\n",
    stderr: "error: one/main not found\n",
  });
});

it("no pod with the labels is said, and none of a deployment is waited for", async () => {
  expect(await sluice.run(["logs", "-l", "app=none"])).toEqual({
    exitCode: 0,
    stdout: "",
    stderr: "No resources found in shop namespace.\n",
  });
  DEPLOYMENT.spec.selector.matchLabels.app = "none";
  const waited = await sluice.run(["logs", "deploy/web", "--pod-running-timeout=1s"]);
  DEPLOYMENT.spec.selector.matchLabels.app = "web";
  expect(waited).toEqual({
    exitCode: 1,
    stdout: "",
    stderr: "error: timed out waiting for the condition\n",
  });
});

it.each([
  [["logs"], "POD or TYPE/NAME is a required argument for the logs command"],
  [["logs", "one", "-l", "app=web"], "only a selector (-l) or a POD name is allowed"],
  [["logs", "one", "-c", "main", "--all-containers"], "should not be specified with container name main"],
  [["logs", "one", "--since=1h", "--since-time=2026-01-01T00:00:00Z"], "at most one of"],
  [["logs", "one", "--tail=-2"], "must be a number of lines, or -1"],
  [["logs", "one", "--since-time=yesterday"], "--since-time must be a time"],
])("%j is a usage error", async (args, message) => {
  const { exitCode, stderr } = await sluice.run(args);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
});

it("a container that the pod has not is named, with those it has", async () => {
  expect(await sluice.run(["logs", "two", "-c", "other"])).toEqual({
    exitCode: 1,
    stdout: "",
    stderr: "error: container other is not valid for pod two out of: setup (init), main, side\n",
  });
});
