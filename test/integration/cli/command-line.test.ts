import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { runCommandLine } from "../../../src/cli/command-line.ts";
import { COMMANDS } from "../../../src/cli/command-list.ts";
import { sluiceCommand } from "../../support/built-program.ts";
import { Sluice } from "../../support/sluice.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

async function sluice(...args: string[]): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  let [stdout, stderr] = ["", ""];
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    stdout += String(text);
    return true;
  });
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    stderr += String(text);
    return true;
  });
  return { exitCode: await runCommandLine(args), stdout, stderr };
}

describe("sluice", () => {
  it.each(["version", "--version"])("%s: says which one it is, and on which Node", async (name) => {
    const { version } = JSON.parse(readFileSync("package.json", "utf8"));
    const stdout = `sluice ${version}, Node ${process.version}\n`;
    expect(await sluice(name)).toEqual({ exitCode: 0, stdout, stderr: "" });
  });

  it("names its commands, and ends with 2 where none was given or it is none", async () => {
    const { stdout } = await sluice("--help");
    expect(stdout).toContain("\nUsage:\n  sluice COMMAND [flags]\n");
    const oneLine = stdout.replace(/\s+/g, " ");
    for (const { name, summary } of COMMANDS) expect(oneLine).toContain(` ${name} ${summary} `);
    expect(await sluice("help")).toEqual({ exitCode: 0, stdout, stderr: "" });
    expect(await sluice()).toEqual({ exitCode: 2, stdout, stderr: "" });
  });

  it.each([
    ["toString", ""],
    ["exce", '; did you mean "exec"?'],
    ["portforward", '; did you mean "port-forward"?'],
  ])("%s: is no command", async (name, suggestion) => {
    const stderr = `sluice: unknown command "${name}"${suggestion}\nSee 'sluice --help' for usage.\n`;
    expect(await sluice(name)).toEqual({ exitCode: 2, stdout: "", stderr });
  });

  it.each(COMMANDS)("$name: has --help, and refuses what it does not know with 2", async ({ name }) => {
    const help = await sluice(name, "--help");
    expect(help).toMatchObject({ exitCode: 0, stderr: "" });
    expect(help.stdout).toContain(`\nUsage:\n  sluice ${name} `);
    expect(Math.max(...help.stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(100);
    expect(await sluice(name, "-h")).toEqual(help);
    expect(await sluice("help", name)).toEqual(help);
    const stderr = `sluice ${name}: unknown flag: --no-such-flag\nSee 'sluice ${name} --help' for usage.\n`;
    expect(await sluice(name, "--no-such-flag")).toEqual({ exitCode: 2, stdout: "", stderr });
  });

  it("prints the JSON Schema of a configuration", async () => {
    const { exitCode, stdout } = await sluice("config", "schema");
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      $schema: "http://json-schema.org/draft-07/schema#",
      properties: { timeouts: { properties: { idle: { default: "4h" } } } },
    });
    expect(await sluice("config", "reference")).toMatchObject({ exitCode: 2 });
  });

  it("prints it to a reader that closes early, without a complaint", async () => {
    const child = spawn(...sluiceCommand("config", "schema"));
    child.stdout.destroy();
    let complaint = "";
    child.stderr.on("data", (text) => {
      complaint += text;
    });
    expect(await once(child, "close")).toEqual([141, null]);
    expect(complaint).toBe("");
  });

  it.each([
    "conformance --pod a/b --quick",
    "load exec web",
  ])("%s: refuses a report's file before the run, not behind it", async (line) => {
    for (const [flag, file, problem] of [
      ["--json", tmpdir(), "is a directory"],
      ["--html", "/nowhere/report.html", "cannot be written: no such file or directory"],
    ] as const) {
      const { exitCode, stderr } = await sluice(...line.split(" "), flag, file);
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`${flag} ${file}: ${problem}\n`)]);
    }
  });

  it("says in one line what the system refused, and ends with 1", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    try {
      const command = sluiceCommand("fake-node", "--name", "node", "--port", `${port}`);
      const { status, stderr } = await new Promise<{ status: unknown; stderr: string }>((resolve) => {
        execFile(...command, (error, _stdout, stderr) => resolve({ status: error?.code, stderr }));
      });
      const problem = `listen tcp 127.0.0.1:${port}: bind: address already in use`;
      expect([status, stderr]).toEqual([1, `sluice fake-node: ${problem}\n`]);
    } finally {
      taken.close();
    }
  });

  it.each<[string, object, string]>([
    [
      "exec",
      { exec: { apiVersion: "client.authentication.k8s.io/v1beta1", command: "/nowhere/plugin" } },
      "getting credentials: exec: fork/exec /nowhere/plugin: no such file or directory",
    ],
    ["exec", { "auth-provider": { name: "x" } }, 'no Auth Provider found for name "x"'],
    [
      "exec",
      {
        "auth-provider": {
          name: "oidc",
          config: { "client-id": "c", "idp-issuer-url": "https://127.0.0.1:1" },
        },
      },
      "No valid id-token, and cannot refresh without refresh-token",
    ],
    ["load", { "auth-provider": { name: "x" } }, 'no Auth Provider found for name "x"'],
  ])("%s: says why there are no credentials, without a stack, and ends with 1", async (name, user, problem) => {
    const folder = await mkdtemp(path.join(tmpdir(), "sluice-command-line-"));
    try {
      const kubeconfig = path.join(folder, "config");
      const config = {
        "current-context": "c",
        contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
        clusters: [{ name: "k", cluster: { server: "https://127.0.0.1:1" } }],
        users: [{ name: "u", user }],
      };
      await writeFile(kubeconfig, JSON.stringify(config));
      const operands = name === "load" ? ["http", "/"] : ["web", "--", "true"];
      const result = await new Sluice({}).run([name, "--kubeconfig", kubeconfig, ...operands]);
      expect(result).toEqual({ exitCode: 1, stdout: "", stderr: `sluice ${name}: ${problem}\n` });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
