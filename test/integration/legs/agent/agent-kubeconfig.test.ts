import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { loadKubeconfig } from "../../../../packages/client/src/kubernetes/kubeconfig.ts";
import {
  AgentKubeconfig,
  KubeconfigTakenError,
  randomToken,
} from "../../../../src/legs/agent/agent-kubeconfig.ts";

const access = {
  server: "https://[::1]:8443",
  authority: "-----BEGIN CERTIFICATE-----\n",
  token: "tok",
  namespace: "team: a",
};
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-kubeconfig-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

it("is for its user alone, says where the agent is, and goes with what was made for it", async () => {
  const made = path.join(folder, "made", "kubeconfig");
  for (const place of [
    { file: path.join(folder, "a") },
    { folder },
    { folder: path.join(folder, "made") },
    {},
  ]) {
    const written = await AgentKubeconfig.write(place, access);
    expect(statSync(written.file).mode & 0o777).toBe(0o600);
    const read = await loadKubeconfig(written.file);
    expect(read).toMatchObject({
      server: access.server,
      namespace: "team: a",
      tls: { ca: access.authority },
    });
    expect(await read.headers()).toEqual([["Authorization", "Bearer tok"]]);
    const isOwnFolder = written.file === made || !written.file.startsWith(folder);
    if (isOwnFolder) expect(statSync(path.dirname(written.file)).mode & 0o777).toBe(0o700);
    await written.remove();
    expect(existsSync(written.file)).toBe(false);
    expect(existsSync(path.dirname(written.file))).toBe(!isOwnFolder);
  }
});

it("does not take the place of a file of somebody else's, nor follow a link", async () => {
  const file = path.join(folder, "config");
  writeFileSync(file, "clusters: []");
  await expect(AgentKubeconfig.write({ file }, access)).rejects.toThrow(KubeconfigTakenError);
  const link = path.join(folder, "link");
  symlinkSync(path.join(folder, "nowhere"), link);
  await expect(AgentKubeconfig.write({ file: link }, access)).rejects.toThrow(/EEXIST|ELOOP/);
  expect(existsSync(path.join(folder, "nowhere"))).toBe(false);
  expect(readFileSync(file, "utf8")).toBe("clusters: []");
});

it("takes the place of an agent that has ended, and not of one that runs", async () => {
  const file = path.join(folder, "config");
  const ended = spawn(process.execPath, ["--version"]);
  await once(ended, "exit");
  writeFileSync(file, `# Written by sluice agent, process ${ended.pid}\nold: true\n`);
  const first = await AgentKubeconfig.write({ file }, access);
  expect(readFileSync(file, "utf8")).not.toContain("old");
  await expect(AgentKubeconfig.write({ file }, access)).rejects.toThrow(
    `${file} belongs to the agent that runs as process ${process.pid}`,
  );
  await first.remove();
  expect(existsSync(file)).toBe(false);
});

it("leaves what was put in its place, and a folder with more in it", async () => {
  const own = path.join(folder, "own");
  const written = await AgentKubeconfig.write({ folder: own }, access);
  writeFileSync(written.file, "somebody else's");
  await written.remove();
  expect(readFileSync(written.file, "utf8")).toBe("somebody else's");
});

it("has a token that nobody guesses, fit for a header", () => {
  const tokens = new Set(Array.from({ length: 100 }, randomToken));
  expect(tokens.size).toBe(100);
  for (const token of tokens) expect(token).toMatch(/^[\w-]{43}$/);
});
