import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { InstalledPackage, registryObstacle } from "../support/installed-package.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

const root = path.resolve(import.meta.dirname, "../..");
const { version, dependencies, optionalDependencies, peerDependencies } = JSON.parse(
  readFileSync(path.join(root, "package.json"), "utf8"),
);
const BIN = "node_modules/sluice/dist/bin/sluice.cjs";

const obstacle = registryObstacle();
const describeInstalled = obstacle === undefined ? describe : describe.skip;
const because = obstacle === undefined ? "" : ` (${obstacle})`;

let gateway: TestGateway;
beforeAll(async () => {
  if (obstacle !== undefined) return;
  gateway = await startTestGateway({
    fakeNodes: [{}],
    users: ["token-admin,admin,admin-uid,system:masters"],
    configuration: { authorization: { mode: ["AlwaysAllow"] } },
  });
});
afterAll(() => gateway?.stop());

describeInstalled(`sluice without what is optional${because}`, () => {
  let installed: InstalledPackage;
  beforeAll(async () => {
    installed = await InstalledPackage.install(["."], ["--omit=dev", "--omit=optional"]);
  });
  afterAll(() => installed?.remove());

  it("takes less than 25 MB", () => {
    expect(installed.megabytesOnDisk()).toBeLessThan(25);
  });

  it("lacks what is optional, and runs", async () => {
    const there = Object.keys(optionalDependencies).filter((name) =>
      existsSync(path.join(installed.folder, "node_modules", name)),
    );
    expect(there).toEqual([]);
    for (const program of [BIN, "node_modules/.bin/sluice", "node_modules/.bin/kubectl-sluice"])
      expect(await installed.run(program, "--version")).toEqual({
        code: 0,
        output: `sluice ${version}, Node ${process.version}\n`,
      });
    const kubeconfig = gateway.kubeconfigFor("token-admin");
    const exec = ["exec", "--kubeconfig", kubeconfig, "web", "-c", "main", "--", "echo", "it works"];
    expect(await installed.run(BIN, ...exec)).toEqual({ code: 0, output: "it works\n" });
  });

  it.each<[string, string, readonly string[]]>([
    ["autocannon", "load of plain HTTP", ["load", "http", "/healthz", "--duration", "1s"]],
    ["uplot", "a report in HTML", ["load", "exec", "web", "--html", "-", "--duration", "1s"]],
  ])("names %s where it is needed", async (name, purpose, command) => {
    const kubeconfig = ["--kubeconfig", gateway.kubeconfigFor("token-admin")];
    expect(await installed.run(BIN, ...command, ...kubeconfig)).toEqual({
      code: 1,
      output: `sluice load: ${purpose} needs a package that is not installed: npm install ${name}@${peerDependencies[name]}\n`,
    });
  });
});

describeInstalled(`sluice as npm installs it${because}`, () => {
  it("takes less than 45 MB", async () => {
    const installed = await InstalledPackage.install(["."]);
    try {
      expect(installed.megabytesOnDisk()).toBeLessThan(45);
      const there = (name: string) => existsSync(path.join(installed.folder, "node_modules", name));
      expect(Object.keys(optionalDependencies).filter((name) => !there(name))).toEqual([]);
      // What only `sluice load` and tracing need is for its users; the API of OpenTelemetry comes with prom-client.
      expect(Object.keys(peerDependencies).filter(there)).toEqual(["@opentelemetry/api"]);
    } finally {
      installed.remove();
    }
  });
});

describeInstalled(`the libraries${because}`, () => {
  /** What a program in TypeScript sees of a package: its examples are checked, and run. */
  const compile = (installed: InstalledPackage, program: string) =>
    installed.run(
      path.relative(installed.folder, path.join(root, "node_modules/typescript/bin/tsc")),
      ...["--noEmit", "--strict", "--allowJs", "--checkJs", "--module", "nodenext", "--target", "es2023"],
      ...["--typeRoots", path.join(root, "node_modules/@types"), "--types", "node", program],
    );

  it("have the version of sluice, and its dependencies'", () => {
    for (const folder of ["protocols", "packages/client", "packages/lab"]) {
      const library = JSON.parse(readFileSync(path.join(root, folder, "package.json"), "utf8"));
      expect(library.version).toBe(version);
      for (const [name, wanted] of Object.entries(library.dependencies ?? {}))
        expect([name, wanted]).toEqual([name, name.startsWith("@sluice/") ? version : dependencies[name]]);
    }
  });

  it("@sluice/client runs a command in less than 5 MB", async () => {
    const installed = await InstalledPackage.install(["packages/client", "protocols"]);
    try {
      expect(installed.megabytesOnDisk()).toBeLessThan(5);
      const example = "node_modules/@sluice/client/examples/exec.mjs";
      installed.write("exec.ts", readFileSync(path.join(installed.folder, example), "utf8"));
      expect(await compile(installed, "exec.ts")).toEqual({ code: 0, output: "" });
      const command = [gateway.kubeconfigFor("token-admin"), "web", "main", "echo", "it works"];
      expect(await installed.run(example, ...command)).toEqual({ code: 0, output: "it works\n" });
    } finally {
      installed.remove();
    }
  });

  it("@sluice/protocols is alone, and decodes what it encodes", async () => {
    const installed = await InstalledPackage.install(["protocols"]);
    try {
      expect(readdirSync(path.join(installed.folder, "node_modules/@sluice"))).toEqual(["protocols"]);
      expect(
        readdirSync(path.join(installed.folder, "node_modules")).filter((name) => !name.startsWith(".")),
      ).toEqual(["@sluice"]);
      expect(installed.megabytesOnDisk()).toBeLessThan(5);
      const example = "node_modules/@sluice/protocols/examples/channels.mjs";
      installed.write("channels.ts", readFileSync(path.join(installed.folder, example), "utf8"));
      expect(await compile(installed, "channels.ts")).toEqual({ code: 0, output: "" });
      expect(await installed.run(example)).toEqual({ code: 0, output: "4 { width: 80, height: 24 }\n" });
      const { exports } = JSON.parse(readFileSync(path.join(root, "protocols/package.json"), "utf8"));
      const doors = Object.keys(exports).map(
        (door) => `await import("${door.replace(".", "@sluice/protocols")}"`,
      );
      const imports = doors.map((door) =>
        door.includes("json") ? `${door}, { with: { type: "json" } });` : `${door});`,
      );
      installed.write("doors.mjs", imports.join("\n"));
      expect(await installed.run("doors.mjs")).toMatchObject({ code: 0 });
      const folders = readdirSync(path.join(root, "protocols"), { withFileTypes: true }).filter(
        (one) => one.isDirectory() && !["dist", "examples", "node_modules"].includes(one.name),
      );
      expect(Object.keys(exports)).toEqual(expect.arrayContaining(folders.map(({ name }) => `./${name}`)));
    } finally {
      installed.remove();
    }
  });
});
