import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ConformanceReport } from "../../../../packages/lab/src/conformance/conformance-report.ts";
import { type RunningDemo, startDemo } from "../../../support/demo.ts";
import { Sluice } from "../../../support/sluice.ts";

let demo: RunningDemo;
let sluice: Sluice;
const folder = mkdtempSync(path.join(tmpdir(), "sluice-conformance-"));
beforeAll(async () => {
  demo = await startDemo();
  sluice = new Sluice({ KUBECONFIG: demo.kubeconfig });
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await demo.stop();
});

describe("sluice conformance", () => {
  it("shows each case, the table and the sum, and writes a report", async () => {
    const file = path.join(folder, "report.json");
    const args = ["conformance", "--kubeconfig", demo.kubeconfig, "--pod", "default/web/main"];
    const result = await sluice.run([...args, "--only", "exec/stdout", "--json", file]);
    expect(result).toMatchObject({ exitCode: 0 });
    expect(result.stderr).toContain("1/3 exec/stdout/websocket-v5  ok, ");
    expect(result.stdout).toContain("group  passed  failed  skipped\nexec        3       0        0\n");
    const report = JSON.parse(readFileSync(file, "utf8")) as ConformanceReport;
    expect(report).toMatchObject({ version: 1, counts: { passed: 3, failed: 0, skipped: 0 } });
    expect(JSON.stringify(report)).not.toContain("token");
  });

  it("exits with 1 where a pod does not exist, and says why nothing could be tried", async () => {
    const args = ["conformance", "--kubeconfig", demo.kubeconfig, "--pod", "default/nope"];
    const result = await sluice.run([...args, "--only", "exec/stdout/spdy"]);
    expect(result).toMatchObject({ exitCode: 1 });
    expect(result.stderr).toContain('skipped: spdy is refused: pods "nope" not found');
  });

  it("asks once for a port that nothing listens on, and says at the top what was not tried", async () => {
    const args = [
      "conformance",
      "--kubeconfig",
      demo.kubeconfig,
      "--pod",
      "default/web",
      "--echo-port",
      "81",
    ];
    const result = await sluice.run([...args, "--only", "port-forward"]);
    expect(result.exitCode).toBe(1);
    expect(result.stdout).toMatch(
      /^NOTHING COULD BE TRIED\n {2}port-forward: port 81 of the pod: error forwarding port 81 .*refused\n/,
    );
    expect(result.stdout).not.toContain("observed:");
  });

  it("tries every kind of case in a quick run, and says what is left while it waits", {
    timeout: 100_000,
  }, async () => {
    const args = ["conformance", "--kubeconfig", demo.kubeconfig, "--pod", "default/web", "--echo-port", "7"];
    const result = await sluice.run(
      [...args, "--quick", "--only", "exec", "--only", "idle", "--only", "port-forward"],
      { timeoutMs: 90_000 },
    );
    expect(result).toMatchObject({ exitCode: 0 });
    expect(result.stderr).toMatch(/^\d+\/\d+ \d+ cases wait, for up to \d s more$/m);
    expect(result.stdout).not.toContain("NOTHING");
  });

  it("writes a page and JUnit's XML, and compares with an earlier report", async () => {
    const [page, xml, json] = ["page.html", "junit.xml", "base.json"].map((name) => path.join(folder, name));
    const args = [
      "conformance",
      "--kubeconfig",
      demo.kubeconfig,
      "--pod",
      "default/web",
      "--only",
      "exec/stdout",
    ];
    expect(await sluice.run([...args, "--json", json ?? ""])).toMatchObject({ exitCode: 0 });
    const text = readFileSync(json ?? "", "utf8");
    writeFileSync(json ?? "", text.replace('"verdict": "passed"', '"verdict": "failed"'));
    const result = await sluice.run([
      ...args,
      "--baseline",
      json ?? "",
      "--html",
      page ?? "",
      "--junit",
      xml ?? "",
    ]);
    expect(result).toMatchObject({ exitCode: 0 });
    expect(result.stdout).toContain(
      "compared with the baseline:\n  mended  exec/stdout/websocket-v5 (must)\n",
    );
    expect(readFileSync(page ?? "", "utf8")).toContain("Since the baseline");
    expect(readFileSync(xml ?? "", "utf8")).toContain('failures="0"');
  });

  it.each([
    [["--pod", "a/b", "--baseline", "/dev/null"], "--baseline /dev/null: "],
    [["--pod", "a/b", "--idle-scale", "2"], "must be between 0.001 and 1"],
    [["--pod", "web"], "--pod web: must be NAMESPACE/NAME or NAMESPACE/NAME/CONTAINER"],
    [["--pod", "a/b", "--only", "nothing"], "--only nothing: no case has this prefix; see --list"],
    [["--pod", "a/b", "--kubelet", "https://127.0.0.1:1"], "--kubelet: --pod needs its container"],
    [["--pod", "a/b", "--runtime-endpoint", "unix:///x"], "--runtime-endpoint: --pod needs its container"],
    [["--pod", "a/b", "--streaming-url", "http://127.0.0.1:1"], "--streaming-url: --pod needs its container"],
    [["--pod", "a/b/c", "--runtime-endpoint", "/run/x"], "--runtime-endpoint must be a unix socket"],
    [
      ["--pod", "a/b/c", "--kubelet", "https://127.0.0.1:1", "--streaming-url", "http://127.0.0.1:1"],
      "--kubelet and --streaming-url: only one server can be tried",
    ],
    [["--wrong"], "unknown flag: --wrong"],
  ])("refuses %j", async (args, message) => {
    const result = await sluice.run(["conformance", ...args]);
    expect(result).toMatchObject({ exitCode: 2 });
    expect(result.stderr).toContain(message);
  });
});
