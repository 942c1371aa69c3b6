import { once } from "node:events";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { spawn } from "@lydell/node-pty";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { compiledCommand, sluiceCommand } from "../../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../../support/demo.ts";
import { eventually } from "../../../support/eventually.ts";
import { Sluice } from "../../../support/sluice.ts";

let demo: RunningDemo;
let sluice: Sluice;

beforeAll(async () => {
  demo = await startDemo(undefined, compiledCommand);
  sluice = new Sluice({ KUBECONFIG: demo.kubeconfig });
});
afterAll(() => demo.stop());

function writtenTo(name: string, text: string): string {
  const file = path.join(path.dirname(demo.kubeconfig), name);
  writeFileSync(file, text);
  return file;
}

describe("sluice exec", () => {
  it.each([
    ["web", "true"],
    ["web-ws", "true"],
    ["web", "false"],
    ["web-ws", "FALSE"],
  ])("runs a command in %s, with KUBECTL_REMOTE_COMMAND_WEBSOCKETS=%s, and gives its exit code", async (pod, value) => {
    const environment = { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: value };
    const command = ["sh", "-c", "cat; echo to stderr >&2; exit 7"];
    const args = ["exec", "-i", pod, "-c", "main", "-v=7", "--", ...command];
    const result = await sluice.run(args, { input: "to stdin", environment });
    expect(result).toMatchObject({ exitCode: 7, stdout: "to stdin" });
    expect(result.stderr).toContain("to stderr\n");
    expect(result.stderr).toMatch(/\ncommand terminated with exit code 7\n$/);
    expect(result.stderr).toContain(
      value === "true"
        ? "Sec-WebSocket-Protocol: v5.channel.k8s.io"
        : "X-Stream-Protocol-Version: v4.channel.k8s.io",
    );
    expect(result.stderr).toContain("Response Status: 101 Switching Protocols in");
    expect(result.stderr).toContain("Authorization: Bearer <masked>\n");
    expect(result.stderr).not.toContain("exit%207");
  });

  it.each(["pod.yaml", "-"])("takes the pod from a manifest: %s", async (file) => {
    const manifest = "kind: Pod\nmetadata:\n  name: web\n---\nkind: Pod\nmetadata: { name: other }\n";
    const named = file === "-" ? file : writtenTo(file, manifest);
    const exec = (namespace: string) =>
      sluice.run(["exec", "-f", named, "-c", "main", "-n", namespace, "--", "echo", "it works"], {
        input: manifest,
      });
    expect(await exec("default")).toMatchObject({ exitCode: 0, stdout: "it works\n" });
  });

  it("a manifest that names another namespace, or no object, is a usage error", async () => {
    const foreign = writtenTo("foreign.yaml", "kind: Pod\nmetadata: { name: web, namespace: shop }\n");
    const none = writtenTo("none.yaml", "- 1\n");
    for (const [file, message] of [
      [foreign, 'the namespace from the provided object "shop" does not match the namespace "default"'],
      [none, "none.yaml has no object with kind and name"],
      ["/nowhere.yaml", "no such file"],
    ] as const) {
      const { exitCode, stderr } = await sluice.run(["exec", "-f", file, "--", "true"]);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(message)]);
    }
  });

  it("carries a few MiB both ways", async () => {
    const input = Buffer.alloc(5 * 1024 * 1024, "0123456789\n");
    const result = await sluice.run(["exec", "-i", "web", "--", "cat"], { input });
    expect(result.exitCode).toBe(0);
    expect(result.stdout).toBe(input.toString());
  });

  it.each([
    [["nope", "--", "ls"], 1, 'Error from server (NotFound): pods "nope" not found\n'],
    [["web", "-c", "other", "--", "ls"], 1, "error: container other not found in pod web\n"],
    [
      ["web", "ls"],
      2,
      "sluice exec: exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead\nSee 'sluice exec --help' for usage.\n",
    ],
    [
      ["web", "--"],
      2,
      "sluice exec: you must specify at least one command for the container\nSee 'sluice exec --help' for usage.\n",
    ],
    [
      ["--", "ls"],
      2,
      "sluice exec: pod or type/name must be specified\nSee 'sluice exec --help' for usage.\n",
    ],
    [
      ["web", "-v", "x", "--", "ls"],
      2,
      "sluice exec: -v x: must be a number\nSee 'sluice exec --help' for usage.\n",
    ],
    [["gadget/web", "--", "ls"], 1, `error: the server doesn't have a resource type "gadget"\n`],
    [["web", "--", "/no/such/program"], 1, /^error: /],
  ])("%j: exit code %i and %j", async (args, exitCode, stderr) => {
    const result = await sluice.run(["exec", ...args]);
    expect(result.exitCode).toBe(exitCode);
    if (typeof stderr === "string") expect(result.stderr).toBe(stderr);
    else expect(result.stderr).toMatch(stderr);
  });

  it("says so where no server is, and where no terminal is", async () => {
    const unreachable = ["exec", "web", "--kubeconfig", "/nowhere", "--", "ls"];
    expect((await sluice.run(unreachable)).exitCode).toBe(2);
    const result = await sluice.run(["exec", "-it", "web", "--", "echo", "hi"]);
    expect(result).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    expect(result.stderr).toBe("Unable to use a TTY - input is not a terminal or the right kind of file\n");
  });

  it("ends quietly when nobody reads its output", async () => {
    const child = sluice.start(["exec", "web", "--", "yes"]);
    child.stdout.once("data", () => child.stdout.destroy());
    const [exitCode] = await once(child, "close");
    expect(exitCode).toBe(141);
  });
});

describe("with a terminal", () => {
  const stopping: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const stop of stopping.splice(0)) await stop();
  });

  function terminal(args: readonly string[]) {
    const child = spawn(...sluiceCommand(...args), {
      cols: 91,
      rows: 31,
      env: { ...process.env, KUBECONFIG: demo.kubeconfig },
    });
    let output = "";
    child.onData((data) => {
      output += data;
    });
    const exitCode = new Promise<number>((resolve) => child.onExit((end) => resolve(end.exitCode)));
    const seen = (text: string | RegExp, times = 1) =>
      eventually(
        () => `${text} in ${JSON.stringify(output)}`,
        () => output.split(text).length > times,
      );
    const stop = async (): Promise<void> => {
      child.kill("SIGKILL");
      await exitCode;
    };
    stopping.push(stop);
    return { child, exitCode, seen };
  }

  it("stays the user's own where the container that is attached to has none, so that Ctrl-C ends the session", async () => {
    const { child, exitCode, seen } = terminal(["attach", "-it", "web"]);
    await seen("error: Unable to use a TTY - container main did not allocate one");
    child.write("a line\r");
    await seen("a line", 2);
    child.write("\u0003");
    await exitCode;
  });

  it("is raw, has its size, follows it, passes Ctrl-C on, and ends with the command's code", async () => {
    const { child, exitCode, seen } = terminal(["exec", "-it", "web", "--", "sh"]);
    await seen(/[$#] /);
    child.write("stty size\r");
    await seen("31 91");
    child.resize(100, 40);
    child.write("sleep 0.2; stty size\r");
    await seen("40 100");
    child.write("sleep 1000; echo after:$?\r");
    await seen("after:$?");
    child.write("\u0003");
    // What is typed before the shell has its terminal again, it may drop.
    await seen(/\^C\s+[$#] /);
    child.write("echo back:$((1+1))\r");
    await seen("back:2");
    child.write("exit 5\r");
    expect(await exitCode).toBe(5);
  });

  it("~. at the start of a line ends the session from here; elsewhere it is sent", async () => {
    const { child, exitCode, seen } = terminal(["exec", "-it", "web", "--", "sh"]);
    await seen(/[$#] /);
    child.write("echo mid~.dle\r");
    await seen("mid~.dle", 2);
    child.write("~.");
    await seen("session closed.");
    expect(await exitCode).toBe(1);
  });
});

describe("sluice attach", () => {
  it.each([
    [["attach", "-i", "web"], KUBECTL_NOTICE],
    [["attach", "-i", "-q", "web"], ""],
  ])("joins the main process: %j", async (args, notice) => {
    const child = sluice.start(args);
    let output = "";
    let errors = "";
    child.stderr.on("data", (chunk) => {
      errors += chunk;
    });
    child.stdout.on("data", (chunk) => {
      output += chunk;
    });
    child.stdin.write("a line\n");
    await eventually("the main process repeats it", () => output.includes("a line"));
    child.kill("SIGTERM");
    await once(child, "close");
    expect(errors).toBe(notice);
  });
});

/** What kubectl 1.37 prints. */
const KUBECTL_NOTICE = [
  "All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed through the command prompt.",
  "If you don't see a command prompt, try pressing enter.",
  "",
].join("\n");
