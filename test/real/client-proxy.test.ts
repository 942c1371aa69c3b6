import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { eventually } from "../support/eventually.ts";
import { freePorts } from "../support/http/loopback.ts";
import { describeReal } from "../support/real-parts.ts";
import { Sluice } from "../support/sluice.ts";

describeReal("tinyproxy", "the client through a real HTTP proxy", () => {
  let demo: RunningDemo;
  let tinyproxy: ChildProcess;
  let folder: string;
  let port: number;

  beforeAll(async () => {
    demo = await startDemo();
    folder = mkdtempSync(path.join(tmpdir(), "sluice-tinyproxy-"));
    [port = 0] = await freePorts(1);
    const configuration = `Port ${port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\nMaxClients 20\nBasicAuth user pass\nLogFile "${folder}/log"\n`;
    writeFileSync(path.join(folder, "tinyproxy.conf"), configuration);
    tinyproxy = spawn("tinyproxy", ["-d", "-c", path.join(folder, "tinyproxy.conf")], { stdio: "ignore" });
    await eventually("the proxy listens", async () => {
      const socket = connect(port, "127.0.0.1");
      await once(socket, "connect");
      socket.destroy();
      return true;
    });
  });
  afterAll(async () => {
    tinyproxy.kill("SIGKILL");
    if (tinyproxy.exitCode === null && tinyproxy.signalCode === null) await once(tinyproxy, "close");
    await demo.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function through(credentials: string): Sluice {
    const kubeconfig = path.join(folder, `kubeconfig-${credentials.length}`);
    const text = readFileSync(demo.kubeconfig, "utf8");
    const proxied = text.replace(
      /^( *)server: /m,
      `$1proxy-url: http://${credentials}@127.0.0.1:${port}\n$1server: `,
    );
    writeFileSync(kubeconfig, proxied);
    return new Sluice({ KUBECONFIG: kubeconfig });
  }

  it.each(["true", "false"])("exec with WebSockets %s", async (value) => {
    const input = "x".repeat(1024 * 1024);
    const environment = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: value };
    const result = await through("user:pass").run(["exec", "-i", "web", "--", "cat"], { input, environment });
    expect(result).toMatchObject({ exitCode: 0, stderr: "", stdout: input });
    expect(readFileSync(path.join(folder, "log"), "utf8")).toContain("CONNECT");
  });

  it("a refusal by the proxy is told as such", async () => {
    const result = await through("user:wrong").run(["exec", "web", "--", "ls"]);
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(/^Unable to connect to the server: proxy: 40[17] /);
  });
});
