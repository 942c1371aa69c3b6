import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { TestApiServer } from "../../support/api-server/test-api-server.ts";
import { compiledSources } from "../../support/built-program.ts";
import { GatewayFiles, selfSignedPair, webOn } from "../../support/gateway-files.ts";
import { ScriptedRuntime } from "../../support/scripted-runtime.ts";

/**
 * Fails the start of the first component, then of the second, and so on; then behind the first part that a builder has started, behind the
 * second, and so on. Prints what is left after each that was not there before: handles, and timers by where they come from.
 */
const PROGRAM = `
  const [folder, file, kind, siblingsFolder] = process.argv.slice(2);
  const { createHook } = await import("node:async_hooks");
  const { readFileSync } = await import("node:fs");
  const timers = new Map();
  createHook({
    init: (id, type) => {
      if (type === "Timeout") timers.set(id, new Error().stack.split("\\n").filter((line) => /\\/(dist\\/src|client\\/dist)\\//.test(line))[0]?.trim() ?? "node");
    },
    destroy: (id) => timers.delete(id),
  }).enable();
  const { startGateway } = await import(folder + "/app/app.js");
  const { Supervisor } = await import(folder + "/lifecycle/supervisor.js");
  const { Started } = await import(folder + "/lifecycle/component.js");
  const { singleProcess } = await import(folder + "/app/runtime.js");
  const { startWorkers } = await import(folder + "/app/runtime/primary.js");
  const { startAgent } = await import(folder + "/app/agent.js");
  const { loadKubeconfig } = await import(folder + "/../../packages/client/dist/kubernetes/kubeconfig.js");
  const { parseConfiguration } = await import(folder + "/config/configuration.js");
  const configurationText = readFileSync(file, "utf8");
  const configuration = parseConfiguration(configurationText, file);
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const runtime =
    kind !== "sibling"
      ? singleProcess
      : { ...singleProcess, shareFindings: () => {}, siblings: { processes: 2, socketFolder: siblingsFolder } };

  const agentOptions = async () => {
    const { tls } = configuration.listeners.apiServer;
    return {
      kubeconfig: await loadKubeconfig(configuration.cluster.live.kubeconfig),
      listen: { address: "127.0.0.1", port: 0 },
      admin: { address: "127.0.0.1", port: 0 },
      tls: { cert: readFileSync(tls.certFile, "utf8"), key: readFileSync(tls.keyFile, "utf8") },
      token: "t",
      place: {},
      logger,
      note() {},
    };
  };
  const start = async (app) =>
    kind === "agent"
      ? startAgent(await agentOptions(), app)
      : kind === "primary"
      ? startWorkers(configuration, 2, { configurationText, configurationFile: file, flags: {} }, { logger, app })
      : startGateway(configuration, logger, runtime, app);

  class FailingSupervisor extends Supervisor {
    constructor(failing) {
      super(logger);
      this.names = [];
      this.failing = failing;
    }
    add(name, build) {
      this.names.push(name);
      const fails = this.names.length - 1 === this.failing;
      return super.add(name, fails ? () => Promise.reject(new Error("start " + this.failing)) : build);
    }
  }

  /** Builders throw behind the part of that number, counted over the whole start. */
  const parts = { count: 0, failing: -1 };
  const add = Started.prototype.add;
  Started.prototype.add = function (part, stop) {
    add.call(this, part, stop);
    if (parts.count++ === parts.failing) throw new Error("part " + parts.failing);
    return part;
  };

  const open = () => [...process.getActiveResourcesInfo().filter((kind) => kind !== "Immediate"), ...timers.values()].sort();
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  /** What is open and was not before. A socket that is being destroyed is closed some turns later. */
  const settled = async (before, boundMs) => {
    const untilMs = performance.now() + boundMs;
    for (;;) {
      const rest = [...before];
      const left = open().filter((kind) => {
        const at = rest.indexOf(kind);
        if (at >= 0) rest.splice(at, 1);
        return at < 0;
      });
      if (left.length === 0 || performance.now() > untilMs) return left;
      await turn();
    }
  };
  const attempt = async (failing, before, failingPart = -1, boundMs = 30_000) => {
    const app = new FailingSupervisor(failing);
    Object.assign(parts, { count: 0, failing: failingPart });
    let problem;
    try {
      const gateway = await start(app);
      await gateway.shutDown();
    } catch (error) {
      problem = error.message;
    }
    return { name: app.names[failing], problem, left: await settled(before, boundMs), count: app.names.length, parts: parts.count };
  };

  // Modules that are loaded at the first use, with what they keep for the process.
  await attempt(-1, [], -1, 5_000).then(({ problem }) => problem && console.error(problem));
  const before = open();
  const results = [];
  for (let failing = 0; failing < (results[0]?.count ?? 1); failing++) results.push(await attempt(failing, before));
  const whole = await attempt(-1, before);
  const inside = [];
  for (let part = 0; part < whole.parts; part++) inside.push(await attempt(-1, before, part));
  console.log(JSON.stringify({ results, inside, whole }));
`;

interface Attempt {
  readonly name?: string;
  readonly problem?: string;
  readonly left: readonly string[];
  readonly count: number;
}

interface Attempts {
  readonly results: readonly Attempt[];
  /** Of builders that throw behind a part that they have started. */
  readonly inside: readonly Attempt[];
  readonly whole: Attempt;
}

let apiServer: TestApiServer;
let runtime: ScriptedRuntime;
let silent: Server;
let pair: Awaited<ReturnType<typeof selfSignedPair>>;
let files: GatewayFiles;
beforeAll(async () => {
  apiServer = await TestApiServer.start();
  runtime = new ScriptedRuntime({ Version: () => ({ runtimeName: "scripted", runtimeVersion: "1" }) });
  await runtime.start();
  silent = createServer().listen(0, "127.0.0.1");
  await once(silent, "listening");
  pair = await selfSignedPair("gateway");
});
afterEach(() => files.remove());
afterAll(async () => {
  silent.close();
  await runtime.stop();
  await apiServer.stop();
});

/** Everything that a gateway can have, so that every kind of component is among those that start. */
async function writeConfiguration(isLive: boolean): Promise<void> {
  files = new GatewayFiles(webOn(1));
  const tls = { certFile: files.write("tls.crt", pair.cert), keyFile: files.write("tls.key", pair.key) };
  const kubeconfig = files.write("kubeconfig", "");
  await apiServer.writeKubeconfig(kubeconfig);
  const configuration = {
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    listeners: {
      apiServer: { port: 0, tls },
      admin: { port: 0 },
      kubelet: {
        port: 0,
        tls,
        authentication: { tokenAuthFile: files.write("node-tokens.csv", "t,u,1\n") },
        authorization: { mode: ["RBAC"] },
        runtime: { endpoint: runtime.endpoint, nodeName: "node" },
      },
      ingress: {
        address: "127.0.0.1",
        httpPort: 0,
        httpsPort: 0,
        defaultCertificate: tls,
        publishedAddresses: ["192.0.2.1"],
        streamingGateways: [
          { name: "local" },
          { name: "next", url: "https://127.0.0.1:1", insecureSkipTLSVerify: true },
        ],
      },
    },
    cluster: isLive ? { kubeconfig } : { manifests: ["cluster.json"] },
    authentication: { tokenAuthFile: files.write("tokens.csv", "t,u,1\n") },
    authorization: { mode: ["RBAC", "AlwaysAllow"] },
    audit: { log: { path: "audit.log" } },
    resumption: { enabled: true },
    upstreamProbes: { nodes: {}, gateways: {} },
    podProbes: { nodeNames: ["node"] },
    timeouts: { shutdownGracePeriod: "0s" },
    logging: { level: "silent" },
  };
  files.write("gateway.json", JSON.stringify(configuration));
}

async function attempts(...more: string[]): Promise<Attempts> {
  const folder = pathToFileURL(compiledSources()).href;
  const args = [files.write("program.mjs", PROGRAM), folder, files.configurationFile, ...more];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 280_000 });
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

describe("a gateway whose n-th component does not start", { timeout: 300_000 }, () => {
  it.each([
    ["manifests", false, "alone", 14, 15],
    ["a live cluster", true, "alone", 14, 18],
    ["manifests, as one of several processes", false, "sibling", 14, 12],
    ["manifests, as the primary of workers", false, "primary", 5, 0],
    ["the agent", true, "agent", 5, 0],
  ])("leaves no handle, listener, timer, watch or child, for every n: %s", async (_what, isLive, kind, count, parts) => {
    await writeConfiguration(isLive);
    const { results, inside, whole } = await attempts(kind, files.folder);
    expect(results.length).toBeGreaterThanOrEqual(count);
    for (const [index, { problem, left, name }] of results.entries()) {
      expect({ left, name }).toEqual({ left: [], name });
      expect(problem).toContain(`start ${index}`);
    }
    expect(inside.length).toBeGreaterThanOrEqual(parts);
    for (const [part, { problem, left }] of inside.entries()) {
      expect({ part, left, problem }).toEqual({ part, left: [], problem: `part ${part}` });
    }
    expect(whole, "started whole, and shut down").toMatchObject({ left: [], count: results.length });
  });
});
