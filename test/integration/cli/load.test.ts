import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadFlags } from "../../../src/cli/commands/load.ts";
import { planOf } from "../../../src/cli/load-plan.ts";
import { parseFlags } from "../../../src/cli/parse-flags.ts";
import { builtProgram } from "../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";
import { eventually } from "../../support/eventually.ts";
import { collect } from "../../support/kubectl.ts";

describe("the flags of sluice load", () => {
  const plan = (operands: string[], flags: Record<string, string> = {}, command: string[] = []) => {
    const given = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
    const invocation = parseFlags({ flags: loadFlags }, [...operands, ...given]);
    if (invocation === "help") throw new Error("help was asked for");
    return planOf(invocation.values, operands, command);
  };

  it("verify every byte unless told otherwise", () => {
    expect(plan(["exec", "web"])).toMatchObject({ protocol: "ws-v5", verification: "echo" });
    expect(plan(["exec", "web"], { direction: "upload" })).toMatchObject({ verification: "digest" });
    expect(plan(["exec", "web"], { direction: "download" })).toMatchObject({ verification: "sequence" });
    expect(plan(["port-forward", "web", "7"])).toMatchObject({
      protocol: "tunnel",
      verification: "echo",
      port: 7,
    });
    expect(plan(["attach", "web"], { sessions: "2" })).toMatchObject({ verification: "none" });
  });

  it("name paths as the server has them", () => {
    expect(plan(["exec", "web"], { container: "c" }, ["cat", "-u"]).path).toBe(
      "/api/v1/namespaces/default/pods/web/exec?command=cat&command=-u&container=c&stdin=true&stdout=true",
    );
    expect(plan(["exec", "web"], { speaks: "kubelet", container: "c" }).path).toBe(
      "/exec/default/web/c?command=cat&input=1&output=1",
    );
    expect(plan(["port-forward", "web", "80"], { protocol: "legacy" }).path).toBe(
      "/api/v1/namespaces/default/pods/web/portforward?ports=80",
    );
    expect(plan(["exec"], { "streaming-url": "http://127.0.0.1:9/exec/AbC?x=1" }).path).toBe("/exec/AbC?x=1");
  });

  it.each([
    [["exec"], {}, "POD is missing"],
    [["run", "web"], {}, '"run": must be exec, attach'],
    [["exec", "web"], { protocol: "tunnel" }, "--protocol tunnel: must be ws-v5 or ws-v4 or spdy"],
    [["exec", "web"], { direction: "upload", protocol: "ws-v4" }, "cannot end the remote command's input"],
    [["exec", "web", "cat"], {}, "too many arguments"],
    [["exec", "web"], { sessions: "0" }, "--sessions 0: must be a whole number between 1 and"],
    [["exec", "web"], { duration: "5" }, '--duration 5: must be a duration such as "2s"'],
    [["exec", "web"], { "message-size": "1Gi" }, "--message-size 1Gi"],
    [["exec", "web"], { verify: "digest" }, "--verify digest: must be echo or none"],
    [["exec", "web"], { speaks: "kubelet" }, "-c CONTAINER is required"],
    [["port-forward", "web"], {}, "PORT is missing"],
  ])("refuse %j %j", (operands, values, message) => {
    expect(() => plan(operands, values)).toThrow(message);
  });
});

describe("sluice load against the demo", () => {
  let demo: RunningDemo;
  let folder: string;
  beforeAll(async () => {
    demo = await startDemo();
    folder = mkdtempSync(path.join(tmpdir(), "sluice-load-"));
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await demo.stop();
  });

  it.each([
    ["exec", "web", "ws-v5", "echo"],
    ["exec", "web", "ws-v4", "echo"],
    ["exec", "web-ws", "spdy", "upload"],
    ["exec", "web", "ws-v5", "download"],
    ["port-forward", "web 7", "tunnel", "echo"],
    ["port-forward", "web 7", "spdy", "echo"],
    ["port-forward", "web 7", "legacy", "echo"],
  ])("%s %s over %s, %s", async (kind, operands, protocol, direction) => {
    const flags = [
      "--protocol",
      protocol,
      "--direction",
      direction,
      "--messages",
      "50",
      "--message-size",
      "10000",
    ];
    const json = path.join(folder, "report.json");
    const { code, stdout, stderr } = await load([
      ...[kind, ...operands.split(" "), ...flags],
      ...["--sessions", "2", "--count", "4", "--processes", "2", "--duration", "60s", "--json", json],
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("4 started, 4 finished, 0 failed");
    const report = JSON.parse(readFileSync(json, "utf8"));
    expect(report.sessions).toEqual({ started: 4, finished: 4, failed: 0 });
    const { sent, received } = report.bytes;
    if (direction === "download") expect(received).toBe(4 * 500_005);
    else expect(sent).toBe(2_000_000);
    if (direction === "echo") expect(received).toBe(2_000_000);
    expect(JSON.stringify(report)).not.toContain("/api/v1");
  });

  it("counts what is refused, writes a page that holds everything, and exits 1", async () => {
    const html = path.join(folder, "report.html");
    const { code, stdout } = await load([
      "exec",
      "<nobody>",
      "--count",
      "2",
      "--duration",
      "60s",
      "--html",
      html,
    ]);
    expect(code).toBe(1);
    expect(stdout).toMatch(/2 {2}http {6}404 NotFound/);
    const page = readFileSync(html, "utf8");
    expect(page).toContain("uPlot=function");
    expect(page).not.toMatch(/<script[^>]+src=|<link|@import/);
    expect(page).not.toContain("<nobody>");
  });

  it("ends with a summary at Ctrl-C", async () => {
    const program = spawn(
      process.execPath,
      [
        builtProgram(),
        "load",
        "exec",
        "web",
        "--kubeconfig",
        demo.kubeconfig,
        "--duration",
        "10m",
        "--message-rate",
        "20",
      ],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    const [stdout, stderr] = [collect(program.stdout), collect(program.stderr)];
    await eventually("something is under way", () => /[1-9]\d* sessions/.test(stderr()), {
      timeoutMs: 20_000,
    });
    program.kill("SIGINT");
    const [code] = await once(program, "close");
    expect(code).toBe(0);
    expect(stdout()).toMatch(/interrupted after [\d.]+ s\nsessions {3}1 started, 1 finished, 0 failed/);
  });

  it("loads plain HTTP", async () => {
    const { code, stdout } = await load(["http", "/version", "--duration", "1s", "--sessions", "2"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/answers {4}200: [1-9]/) });
  });

  async function load(args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const program = spawn(
      process.execPath,
      [builtProgram(), "load", ...args, "--kubeconfig", demo.kubeconfig],
      {
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const [stdout, stderr] = [collect(program.stdout), collect(program.stderr)];
    const [code] = await once(program, "close");
    return { code, stdout: stdout(), stderr: stderr() };
  }
});
