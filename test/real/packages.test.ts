import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InstalledPackage, registryObstacle } from "../support/installed-package.ts";
import { startShellGateway } from "../support/shell-gateway.ts";
import type { TestGateway } from "../support/test-gateway.ts";

const root = path.resolve(import.meta.dirname, "../..");
const { version, optionalDependencies } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
const BIN = "node_modules/sluice/dist/src/main.js";

const obstacle = registryObstacle();
const describeInstalled = obstacle === undefined ? describe : describe.skip;
const because = obstacle === undefined ? "" : ` (${obstacle})`;

let gateway: TestGateway;
beforeAll(async () => {
  if (obstacle !== undefined) return;
  gateway = await startShellGateway({
    users: ["token-admin,admin,admin-uid,system:masters"],
    manifests: [],
    configuration: { authorization: { mode: ["AlwaysAllow"] } },
  });
});
afterAll(() => gateway?.stop());

/** Runs a command in the pod, through the client library named. */
const execProgram = (library: string) => `
import { execPath, FallbackExecutor, kubeconfigTarget, loadKubeconfig, SpdyExecutor, WebSocketExecutor } from "${library}";
const target = kubeconfigTarget(await loadKubeconfig(process.argv[2]));
const path = execPath({ namespace: "default", pod: "web", container: "main" }, ["echo", "it works"]);
const executor = new FallbackExecutor(new WebSocketExecutor(target, path), new SpdyExecutor(target, path));
const { exitCode } = await executor.stream({ stdout: process.stdout });
process.exitCode = exitCode;
`;

describeInstalled(`sluice without what is optional${because}`, () => {
  let installed: InstalledPackage;
  beforeAll(async () => {
    installed = await InstalledPackage.install(["."], ["--omit=dev", "--omit=optional"]);
  });
  afterAll(() => installed?.remove());

  it("takes less than 45 MB", () => {
    expect(installed.megabytesOnDisk()).toBeLessThan(45);
  });

  it("lacks what is optional, and runs", async () => {
    const there = Object.keys(optionalDependencies).filter((name) =>
      existsSync(path.join(installed.folder, "node_modules", name)),
    );
    expect(there).toEqual([]);
    expect(await installed.run(BIN, "--version")).toEqual({
      code: 0,
      output: `sluice ${version}, Node ${process.version}\n`,
    });
    const kubeconfig = gateway.kubeconfigFor("token-admin");
    const exec = ["exec", "--kubeconfig", kubeconfig, "web", "-c", "main", "--", "echo", "it works"];
    expect(await installed.run(BIN, ...exec)).toEqual({ code: 0, output: "it works\n" });
    installed.write("exec.mjs", execProgram("sluice/client"));
    expect(await installed.run("exec.mjs", kubeconfig)).toEqual({ code: 0, output: "it works\n" });
  });

  it.each<[string, string, readonly string[]]>([
    ["autocannon", "load of plain HTTP", ["load", "http", "/healthz", "--duration", "1s"]],
    ["uplot", "a report in HTML", ["load", "exec", "web", "--html", "-", "--duration", "1s"]],
  ])("names %s where it is needed", async (name, purpose, command) => {
    const kubeconfig = ["--kubeconfig", gateway.kubeconfigFor("token-admin")];
    expect(await installed.run(BIN, ...command, ...kubeconfig)).toEqual({
      code: 1,
      output: `sluice load: ${purpose} needs a package that is not installed: npm install ${name}@${optionalDependencies[name]}\n`,
    });
  });
});

describeInstalled(`sluice as npm installs it${because}`, () => {
  it("takes less than 60 MB", async () => {
    const installed = await InstalledPackage.install(["."]);
    try {
      expect(installed.megabytesOnDisk()).toBeLessThan(60);
      for (const name of Object.keys(optionalDependencies)) {
        expect(existsSync(path.join(installed.folder, "node_modules", name)), name).toBe(true);
      }
    } finally {
      installed.remove();
    }
  });
});
