import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import type { Invocation } from "../../../../src/cli/command.ts";
import { command as loadCommand } from "../../../../src/cli/commands/load.ts";
import { run } from "../../../../src/cli/load/load.ts";
import { planOf } from "../../../../src/cli/load/load-plan.ts";
import { exitCodeOf } from "../../../../src/cli/load/load-result.ts";
import { parseFlags } from "../../../../src/cli/parse-flags.ts";
import { sluiceCommand } from "../../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../../support/demo.ts";
import { eventually } from "../../../support/eventually.ts";
import { collect } from "../../../support/kubectl.ts";

describe("the flags of sluice load", () => {
  const plan = (operands: string[], flags: Record<string, string> = {}, command: string[] = []) => {
    const given = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
    const invocation = parseFlags(loadCommand, [...operands, ...given]);
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

  it("have one message in flight on loopback, unless a rate or a number says otherwise", () => {
    const inFlight = (flags: Record<string, string>, isOnLoopback = true) => {
      const given = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
      const invocation = parseFlags(loadCommand, ["exec", "web", ...given]);
      if (invocation === "help") throw new Error("help was asked for");
      return planOf(invocation.values, ["exec", "web"], [], isOnLoopback).messagesInFlight;
    };
    expect(inFlight({})).toBe(1);
    expect(inFlight({}, false)).toBe(0);
    expect(inFlight({ "message-rate": "10" })).toBe(0);
    expect(inFlight({ direction: "upload" })).toBe(0);
    expect(inFlight({ "in-flight": "0" })).toBe(0);
    expect(inFlight({ "in-flight": "8" }, false)).toBe(8);
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
    [["exec", "web"], { protocol: "tunnel" }, "--protocol tunnel: must be ws-v5, ws-v4 or spdy"],
    [["exec", "web"], { direction: "upload", protocol: "ws-v4" }, "cannot end the remote command's input"],
    [["exec", "web", "cat"], {}, "too many arguments"],
    [["exec", "web"], { sessions: "0" }, "--sessions 0: must be a whole number between 1 and"],
    [["exec", "web"], { duration: "5" }, '--duration 5: must be a duration such as "2s"'],
    [["exec", "web"], { "message-size": "1Gi" }, "--message-size 1Gi"],
    [["exec", "web"], { verify: "digest" }, "--verify digest: must be echo or none"],
    [
      ["exec", "web"],
      { direction: "upload", "in-flight": "1" },
      "only messages of --direction echo come back",
    ],
    [["exec", "web"], { speaks: "kubelet" }, "-c CONTAINER is required"],
    [["port-forward", "web"], {}, "PORT is missing"],
    [["exec", "web"], { part: "2/2" }, "--part 2/2: must be I/N, I from 0 and below N"],
  ])("refuse %j %j", (operands, values, message) => {
    expect(() => plan(operands, values)).toThrow(message);
  });
});

describe("the exit code of sluice load", () => {
  const [met, failed] = [true, false].map((isMet) => ({ text: "", unit: "us" as const, value: 1, isMet }));
  it.each([
    ["every session finished", { finished: 2, failed: 0 }, [], [met], 0],
    ["a session failed", { finished: 2, failed: 1 }, ["message_latency"], [met], 1],
    ["a session failed, which a threshold accepts", { finished: 2, failed: 1 }, ["error_rate"], [met], 0],
    ["none finished", { finished: 0, failed: 1 }, ["failed"], [met], 1],
    ["a threshold is not met", { finished: 2, failed: 1 }, ["failed", "error_rate"], [met, failed], 99],
  ])("where %s", (_, sessions, metrics, judged, code) => {
    const thresholds = metrics.map((metric) => ({ metric }));
    expect(
      exitCodeOf(
        sessions,
        thresholds,
        judged.filter((each) => each !== undefined),
      ),
    ).toBe(code);
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
      // One by one they would take long enough for a line of progress.
      ...(direction === "echo" ? ["--in-flight", "0"] : []),
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

  it("adds up parts of several programs, and judges them by thresholds", async () => {
    const files = [0, 1, 2].map((index) => path.join(folder, `part-${index}.json`));
    const flags = [
      "--messages",
      "20",
      "--message-size",
      "100",
      "--sessions",
      "3",
      "--count",
      "9",
      "--seed",
      "5",
    ];
    const parts = await Promise.all(
      files.map((file, index) =>
        load(["exec", "web", ...flags, "--duration", "60s", "--part", `${index}/3`, "--json", file]),
      ),
    );
    expect(parts.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(parts[1]?.stdout).toContain("part       1 of 3\nsessions   3 started, 3 finished, 0 failed");
    const json = path.join(folder, "merged.json");
    const held = ["--threshold", "message_latency:p99<1m", "--threshold", "error_rate<1%"];
    const merged = await load(["merge", ...files, "--json", json, ...held]);
    expect({ code: merged.code, stderr: merged.stderr }).toEqual({ code: 0, stderr: "" });
    expect(merged.stdout).toMatch(
      /parts {6}3 of 3, started within .*\nsessions {3}9 started, 9 finished, 0 failed/,
    );
    expect(merged.stdout).toMatch(
      /message {14}180 .*\n[\s\S]*thresholds\n {2}pass {2}message_latency:p99<1m {2}\d/,
    );
    expect(JSON.parse(readFileSync(json, "utf8"))).toMatchObject({
      sessions: { started: 9 },
      latencies: { message: { count: 180 } },
      thresholds: [{ text: "message_latency:p99<1m", isMet: true }, { isMet: true }],
    });
    const crossed = await load(["merge", ...files, "--threshold", "message_latency:p50<1us"]);
    expect({ code: crossed.code, stdout: crossed.stdout }).toEqual({
      code: 99,
      stdout: expect.stringMatching(/ {2}FAIL {2}message_latency:p50<1us {2}\d/),
    });
    const incomplete = await load(["merge", ...files.slice(1), ...held]);
    expect({ code: incomplete.code, stdout: incomplete.stdout }).toEqual({
      code: 1,
      stdout: expect.stringMatching(/parts {6}2 of 3, 0 MISSING, started within/),
    });
    const twice = await load(["merge", ...files, files[1] ?? ""]);
    expect({ code: twice.code, stderr: twice.stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining(`${files[1]}: part 1 of 3 is in ${files[1]}, too`),
    });
    const none = await load(["merge", path.join(folder, "part-9.json")]);
    expect({ code: none.code, stderr: none.stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining("part-9.json: no such file or directory"),
    });
  });

  it("starts parts together, at the time that they are given", async () => {
    const startAtMs = Date.now() + 8_000;
    const at = new Date(startAtMs).toISOString();
    const flags = [
      "--sessions",
      "2",
      "--count",
      "2",
      "--messages",
      "1",
      "--message-size",
      "100",
      "--seed",
      "5",
    ];
    const files = [0, 1].map((index) => path.join(folder, `timed-${index}.json`));
    const part = (index: number) =>
      load([
        ...["exec", "web", ...flags, "--duration", "60s", "--part", `${index}/2`],
        ...["--json", files[index] ?? "", "--start-at", at],
      ]);
    const [one, other] = await Promise.all([part(0), part(1)]);
    expect([one.code, other.code]).toEqual([0, 0]);
    expect(one.stderr).toBe(`starts at ${at}\n`);
    const started = files.map((file) => JSON.parse(readFileSync(file, "utf8")).startedAt);
    expect(started).toEqual([at, at]);
    const merged = await load(["merge", ...files]);
    expect(merged.stdout).toContain("parts      2 of 2, started within 0 µs\n");
  });

  it("ends at Ctrl-C while it waits for its start", async () => {
    const args = ["exec", "web", "--kubeconfig", demo.kubeconfig, "--start-at", "+1h"];
    const program = spawn(...sluiceCommand("load", ...args), { stdio: ["ignore", "pipe", "pipe"] });
    const [stdout, stderr] = [collect(program.stdout), collect(program.stderr)];
    await eventually("it waits", () => /^starts at /.test(stderr()), { timeoutMs: 20_000 });
    program.kill("SIGINT");
    const [code] = await once(program, "close");
    expect(code).toBe(1);
    expect(stdout()).toMatch(/interrupted after 0 s\nsessions {3}0 started, 0 finished, 0 failed/);
  });

  it.each([
    ["yesterday", "must be a time such as"],
    ["+", "must be a time such as"],
    ["+25h", "within a day"],
    ["2026-01-31T12:00:00", "must be a time such as"],
  ])("refuses --start-at %s", (time, message) => {
    expect(() => parseFlags(loadCommand, ["exec", "web", "--start-at", time])).toThrow(message);
  });

  it("prints a Job whose pods do a part each", async () => {
    const args = [
      "exec",
      "web",
      "--sessions",
      "30",
      "--seed",
      "7",
      "--server",
      "https://gw",
      "--",
      "cat",
      "-u",
    ];
    const job = [
      "job",
      "3",
      "-n",
      "team",
      "--image",
      "reg/sluice:1",
      "--threshold",
      "error_rate<1%",
      "--start-at",
      "+90s",
      "--",
      ...args,
    ];
    const printedMs = Date.now();
    const { code, stdout } = await sluice(["load", ...job]);
    expect(code).toBe(0);
    expect(stdout).toContain("| sluice load merge - --threshold 'error_rate<1%'\n");
    const objects = parseAllDocuments(stdout).map((document) => document.toJS());
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace}`)).toEqual([
      "ServiceAccount team",
      "Role team",
      "RoleBinding team",
      "Job team",
    ]);
    expect(objects[2].subjects).toMatchObject([{ namespace: "team" }]);
    const { spec } = objects[3];
    expect(spec).toMatchObject({ completionMode: "Indexed", completions: 3, parallelism: 3 });
    const [container] = spec.template.spec.containers;
    expect(container).toMatchObject({ image: "reg/sluice:1" });
    const token = "--token-file=/var/run/secrets/kubernetes.io/serviceaccount/token";
    const [start = ""] = container.args.splice(2, 1);
    expect(start).toMatch(/^--start-at=/);
    const afterMs = Date.parse(start.replace("--start-at=", "")) - printedMs;
    expect(afterMs).toBeGreaterThanOrEqual(90_000);
    expect(spec.activeDeadlineSeconds).toBeGreaterThan(370 + 80);
    expect(container.args).toEqual([
      ...["load", "--part=$(JOB_COMPLETION_INDEX)/3", "--json=-", token, ...args],
    ]);
  });

  it.each([
    [["job", "0", "--", "exec", "web"], "PARTS 0: must be a number from 1"],
    [["job", "2", "exec", "web"], 'job takes PARTS, "--" and the arguments of a load'],
    [["job", "2", "--", "http", "/"], "http is not for a job"],
    [["job", "2", "--", "exec", "web", "--sessions", "1"], "--sessions must be 2 or more"],
    [
      ["job", "2", "--", "exec", "web", "--sessions", "2", "--token", "x"],
      "--token is not for the pods of a job",
    ],
    [
      ["job", "2", "--", "exec", "web", "--sessions", "2", "--start-at", "+1m"],
      "--start-at is not for the pods of a job",
    ],
    [["job", "2", "-n", "A", "--", "exec", "web", "--sessions", "2"], '"A" is not a namespace'],
  ])("refuses %j", async (args, message) => {
    const invocation = parseFlags(loadCommand, args) as Invocation<typeof loadCommand.flags>;
    await expect(run(invocation)).rejects.toThrow(message);
  });

  it("refuses a file above the bound before it is read", async () => {
    const file = path.join(folder, "large.json");
    writeFileSync(file, "");
    truncateSync(file, 256 * 1024 * 1024 + 1);
    const { code, stderr } = await load(["merge", file]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining(`${file}: the file has more than 268435456 bytes`),
    });
  });

  it("refuses a device that does not end, at the same bound", async () => {
    const { code, stderr } = await load(["merge", "/dev/zero"]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining("/dev/zero: the file has more than 268435456 bytes"),
    });
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
    const args = [
      "exec",
      "web",
      "--kubeconfig",
      demo.kubeconfig,
      "--duration",
      "10m",
      "--message-rate",
      "20",
    ];
    const program = spawn(...sluiceCommand("load", ...args), { stdio: ["ignore", "pipe", "pipe"] });
    const [stdout, stderr] = [collect(program.stdout), collect(program.stderr)];
    await eventually("something is under way", () => /[1-9]\d* sessions/.test(stderr()), {
      timeoutMs: 20_000,
    });
    program.kill("SIGINT");
    const [code] = await once(program, "close");
    expect(code).toBe(0);
    expect(stdout()).toMatch(/interrupted after [\d.]+ s\nsessions {3}1 started, 1 finished, 0 failed/);
  });

  it("adds up plain requests of several programs", async () => {
    const files = [0, 1].map((index) => path.join(folder, `http-${index}.json`));
    const flags = ["--duration", "1s", "--sessions", "3", "--arrival-rate", "20"];
    const parts = await Promise.all(
      files.map((file, index) =>
        load(["http", "/version", ...flags, "--part", `${index}/2`, "--json", file, "--start-at", "+3s"]),
      ),
    );
    expect(parts.map(({ code }) => code)).toEqual([0, 0]);
    const requests = files.map((file) => JSON.parse(readFileSync(file, "utf8")).requests);
    const merged = await load(["merge", ...files, "--threshold", "request_latency:p75<1m"]);
    expect({ code: merged.code, stderr: merged.stderr }).toEqual({ code: 0, stderr: "" });
    expect(merged.stdout).toMatch(
      new RegExp(`parts {6}2 of 2, started within .*\nrequests {3}${requests[0] + requests[1]} \\(`),
    );
    const mixed = path.join(folder, "mixed.json");
    await load(["exec", "web", "--count", "1", "--messages", "1", "--json", mixed]);
    expect(await load(["merge", files[0] ?? "", mixed])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("it is a LoadReport, but"),
    });
  });

  it("loads plain HTTP", async () => {
    const { code, stdout } = await load(["http", "/version", "--duration", "1s", "--sessions", "2"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/answers {4}200: [1-9]/) });
    const slow = await load(["http", "/version", "--duration", "1s", "--threshold", "request_rate<1"]);
    expect(slow).toMatchObject({
      code: 99,
      stdout: expect.stringMatching(/ {2}FAIL {2}request_rate<1 {2}\d/),
    });
  });

  interface Ended {
    readonly code: number;
    readonly stdout: string;
    readonly stderr: string;
  }

  function load(args: readonly string[]): Promise<Ended> {
    return sluice(["load", ...args, "--kubeconfig", demo.kubeconfig]);
  }

  async function sluice(args: readonly string[]): Promise<Ended> {
    const program = spawn(...sluiceCommand(...args), { stdio: ["ignore", "pipe", "pipe"] });
    const [stdout, stderr] = [collect(program.stdout), collect(program.stderr)];
    const [code] = await once(program, "close");
    return { code, stdout: stdout(), stderr: stderr() };
  }
});
