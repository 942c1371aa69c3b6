import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { collect } from "../../../support/kubectl.ts";
import { Sluice } from "../../../support/sluice.ts";

let folder: string;
let server: Server;
let sluice: Sluice;
const agents: ChildProcessWithoutNullStreams[] = [];

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-agent-cli-"));
  server = createServer((_request, response) => response.end('{"kind":"Pod","metadata":{}}'));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const kubeconfig = path.join(folder, "users-own");
  const config = {
    "current-context": "c",
    contexts: [{ name: "c", context: { cluster: "c", user: "u", namespace: "team-a" } }],
    clusters: [
      { name: "c", cluster: { server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` } },
    ],
    users: [{ name: "u", user: { token: "the-users-secret" } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  sluice = new Sluice({ KUBECONFIG: kubeconfig, TMPDIR: folder });
});
afterEach(async () => {
  for (const agent of agents.splice(0)) {
    if (agent.exitCode !== null || agent.signalCode !== null) continue;
    const closed = once(agent, "close");
    agent.kill("SIGKILL");
    await closed;
  }
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

async function startAgent(...args: string[]) {
  const agent = sluice.start(["agent", ...args]);
  agents.push(agent);
  const stdout = collect(agent.stdout);
  const stderr = collect(agent.stderr);
  const file = await eventually(
    () => `the agent is ready; it said ${stderr()}`,
    () => /^ready (.+)\n$/.exec(stdout())?.[1],
    { timeoutMs: 20_000 },
  );
  return { agent, file, stderr };
}

describe("sluice agent", () => {
  it.each([
    "SIGTERM",
    "SIGINT",
    "SIGHUP",
  ] as const)("serves until %s and leaves nothing behind", async (signal) => {
    const { agent, file, stderr } = await startAgent("-v=9");
    const text = readFileSync(file, "utf8");
    const get = await sluice.run(["exec", "web", "--", "true"], { environment: { KUBECONFIG: file } });
    // The server knows no upgrade; that it was asked is what matters here.
    expect(get.exitCode).toBe(1);
    expect(stderr()).toContain("/api/v1/namespaces/team-a/pods/web");
    const token = /"token":"([^"]+)"/.exec(text)?.[1] ?? "";
    expect(token).not.toBe("");
    for (const secret of [token, "the-users-secret"]) expect(stderr()).not.toContain(secret);
    expect(text).not.toContain("the-users-secret");
    const exited = once(agent, "exit");
    agent.kill(signal);
    expect((await exited)[0]).toBe(0);
    expect(readdirSync(folder)).toEqual(["users-own"]);
    await expect(portOf(text)).rejects.toThrow("ECONNREFUSED");
  });

  it("takes the place of one that was killed, not of one that runs", async () => {
    const place = ["--write-kubeconfig", path.join(folder, "agent")];
    const first = await startAgent(...place);
    const second = await sluice.run(["agent", ...place]);
    expect(second).toMatchObject({ exitCode: 2, stdout: "" });
    expect(second.stderr).toContain(`belongs to the agent that runs as process ${first.agent.pid}`);
    const exited = once(first.agent, "exit");
    first.agent.kill("SIGKILL");
    await exited;
    const old = readFileSync(first.file, "utf8");
    await startAgent(...place);
    expect(readFileSync(first.file, "utf8")).not.toBe(old);
  });

  it("runs beside others of the same user, each with a token of its own", async () => {
    const [one, other] = [await startAgent(), await startAgent()];
    expect(one.file).not.toBe(other.file);
    const texts = [one, other].map(({ file }) => readFileSync(file, "utf8"));
    const [token, otherToken] = texts.map((text) => /"token":"([^"]+)"/.exec(text)?.[1]);
    expect(token).not.toBe(otherToken);
    for (const text of texts) await portOf(text);
  });

  it.each([
    [["--address", "0.0.0.0"], 2, "listens on loopback only"],
    [["--address", "::"], 2, "listens on loopback only"],
    [["--address", "example.com"], 2, "listens on loopback only"],
    [["--port", "70000"], 2, "--port 70000: must be a port"],
    [["--dir", "a", "--write-kubeconfig", "b"], 2, "exclude each other"],
    [["--context", "nobody"], 2, 'context "nobody" does not exist'],
    [["--write-kubeconfig", "/proc/none/config"], 1, "no such file or directory"],
    [["-v", "much"], 2, "-v much: must be a number"],
  ])("ends with %j: %i, %s", async (args, exitCode, words) => {
    const result = await sluice.run(["agent", ...args]);
    expect(result).toMatchObject({ exitCode, stdout: "" });
    expect(result.stderr).toContain(words);
    const [, hint = ""] = result.stderr.split("\n");
    expect(["", "See 'sluice agent --help' for usage."]).toContain(hint);
  });

  it("says in one line that its port is taken", async () => {
    const port = String((server.address() as AddressInfo).port);
    const result = await sluice.run(["agent", "--port", port]);
    expect(result).toMatchObject({ exitCode: 1, stdout: "" });
    expect(result.stderr).toBe(`sluice agent: listen tcp 127.0.0.1:${port}: bind: address already in use\n`);
    expect(existsSync(path.join(folder, "kubeconfig"))).toBe(false);
  });
});

/** Rejects where nobody listens. */
async function portOf(kubeconfig: string): Promise<void> {
  const socket = connect(Number(/127\.0\.0\.1:(\d+)/.exec(kubeconfig)?.[1]), "127.0.0.1");
  await once(socket, "connect");
  socket.destroy();
}
