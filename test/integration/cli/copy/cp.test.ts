import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sluiceCommand } from "../../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../../support/demo.ts";
import { eventually } from "../../../support/eventually.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { collect } from "../../../support/kubectl.ts";
import { Sluice } from "../../../support/sluice.ts";

let demo: RunningDemo;
let sluice: Sluice;
/** The demo's containers see this machine's files: one folder is theirs, one is ours. */
let folder: string;
let remote: string;
let local: string;
let proxy: FaultProxy | undefined;

beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo.stop());
beforeEach(() => {
  sluice = new Sluice({ KUBECONFIG: demo.kubeconfig });
  folder = mkdtempSync(path.join(tmpdir(), "sluice-cp-"));
  [remote, local] = [path.join(folder, "remote"), path.join(folder, "local")];
  mkdirSync(remote);
  mkdirSync(local);
});
afterEach(async () => {
  await proxy?.close();
  proxy = undefined;
  rmSync(folder, { recursive: true, force: true });
});

/** The same gateway behind a network that cuts connections. */
async function throughFaults(cutAfterBytes: number, maxCuts: number): Promise<Sluice> {
  const text = readFileSync(demo.kubeconfig, "utf8");
  const port = Number(/127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
  proxy = await startFaultProxy(port, { cutAfterBytes, maxCuts });
  const kubeconfig = path.join(folder, "kubeconfig");
  writeFileSync(kubeconfig, text.replace(`127.0.0.1:${port}`, `127.0.0.1:${proxy.port}`));
  return new Sluice({ KUBECONFIG: kubeconfig });
}

const digest = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");

function fill(file: string, bytes: number): string {
  writeFileSync(file, randomBytes(bytes));
  return digest(file);
}

function makeTree(root: string): void {
  mkdirSync(path.join(root, "a/b"), { recursive: true });
  for (const name of ["a/one", "a/b/two", "we ird*[x]", "-dash", "empty"])
    writeFileSync(path.join(root, name), name);
  writeFileSync(path.join(root, "empty"), "");
  linkSync(path.join(root, "a/one"), path.join(root, "hard"));
  symlinkSync("/etc/passwd", path.join(root, "link"));
  chmodSync(path.join(root, "a/b/two"), 0o600);
}

const names = (root: string) => readdirSync(root, { recursive: true, encoding: "utf8" }).sort();

describe("sluice cp", () => {
  it.each([
    "web",
    "web-ws",
  ])("copies a file from and to %s, mode included; a folder gives it its name", async (pod) => {
    const hash = fill(path.join(remote, "-file"), 3_000_000);
    chmodSync(path.join(remote, "-file"), 0o640);
    expect(await sluice.run(["cp", `${pod}:${remote}/-file`, local])).toMatchObject({
      exitCode: 0,
      stderr: "",
    });
    expect(digest(path.join(local, "-file"))).toBe(hash);
    expect(statSync(path.join(local, "-file")).mode & 0o777).toBe(0o640);
    expect(await sluice.run(["cp", path.join(local, "-file"), `default/${pod}:${remote}/new`])).toMatchObject(
      { exitCode: 0, stderr: "" },
    );
    expect(digest(path.join(remote, "new"))).toBe(hash);
    expect(statSync(path.join(remote, "new")).mode & 0o777).toBe(0o640);
    expect([names(remote), names(local)]).toEqual([["-file", "new"], ["-file"]]);
  });

  it("sends less at once where connections do not last, of a size that cannot be halved evenly, too", async () => {
    const hash = fill(path.join(local, "odd"), 700_001);
    const faulty = await throughFaults(100_000, 4);
    expect(await faulty.run(["cp", path.join(local, "odd"), `web:${remote}/odd`])).toMatchObject({
      exitCode: 0,
      stderr: "",
    });
    expect(digest(path.join(remote, "odd"))).toBe(hash);
    expect(proxy?.cuts).toBe(4);
  });

  it("copies stdin and stdout", async () => {
    expect(await sluice.run(["cp", "-", `web:${remote}/file`], { input: "from stdin" })).toMatchObject({
      exitCode: 0,
    });
    expect(await sluice.run(["cp", `web:${remote}/file`, "-"])).toMatchObject({
      exitCode: 0,
      stdout: "from stdin",
    });
  });

  it("copies folders both ways; a download leaves links out, and says so", async () => {
    makeTree(path.join(local, "tree"));
    // Up to SMALL_BYTES of packages/client/src/copy/download-folder.ts, and past it.
    const hashes = [64 * 1024, 64 * 1024 + 1, 200_000].map((bytes) => ({
      name: String(bytes),
      hash: fill(path.join(local, "tree", String(bytes)), bytes),
    }));
    expect(await sluice.run(["cp", path.join(local, "tree"), `web:${remote}/copy`])).toMatchObject({
      exitCode: 0,
      stderr: "",
    });
    expect(names(path.join(remote, "copy"))).toEqual(names(path.join(local, "tree")));
    const down = await sluice.run(["cp", `web:${remote}/copy`, local]);
    expect(down).toMatchObject({ exitCode: 0, stderr: 'warning: skipping symlink: "link"\n' });
    expect(names(path.join(local, "copy"))).toEqual(
      names(path.join(local, "tree")).filter((name) => name !== "link"),
    );
    for (const { name, hash } of hashes) expect(digest(path.join(local, "copy", name))).toBe(hash);
    expect(readFileSync(path.join(local, "copy/we ird*[x]"), "utf8")).toBe("we ird*[x]");
    expect(statSync(path.join(local, "copy/a/b/two")).mode & 0o777).toBe(0o600);
    expect([names(local), names(remote)].flat().filter((name) => name.includes("partial"))).toEqual([]);
  });

  it("puts a folder into one that is there, and never through a link in it", async () => {
    makeTree(path.join(remote, "tree"));
    mkdirSync(path.join(local, "tree/a"), { recursive: true });
    writeFileSync(path.join(local, "tree/a/mine"), "");
    expect((await sluice.run(["cp", `web:${remote}/tree`, local])).exitCode).toBe(0);
    expect(names(path.join(local, "tree/a"))).toEqual(["b", "b/two", "mine", "one"]);

    const elsewhere = path.join(folder, "elsewhere");
    mkdirSync(elsewhere);
    rmSync(path.join(local, "tree"), { recursive: true });
    mkdirSync(path.join(local, "tree"));
    symlinkSync(elsewhere, path.join(local, "tree/a"));
    const refused = await sluice.run(["cp", `web:${remote}/tree`, local]);
    expect(refused).toMatchObject({ exitCode: 1 });
    expect(readdirSync(elsewhere)).toEqual([]);
  });

  it.each(["download", "upload"])("goes on after 50 lost connections in one %s, and never from zero", {
    timeout: 100_000,
  }, async (way) => {
    const size = 64 * 1024 * 1024;
    const [source, target] = way === "download" ? [remote, local] : [local, remote];
    const hash = fill(path.join(source, "big"), size);
    const faulty = await throughFaults(1_200_000, 50);
    const [from, to] =
      way === "download" ? [`web:${source}/big`, target] : [`${source}/big`, `web:${target}`];
    const copied = await faulty.run(["cp", "-v", "4", from as string, to as string], { timeoutMs: 90_000 });
    expect(copied).toMatchObject({ exitCode: 0 });
    expect(digest(path.join(target as string, "big"))).toBe(hash);
    expect(names(target as string)).toEqual(["big"]);
    expect(proxy?.cuts).toBe(50);
    // Of what a connection carried until it was cut, all can be lost at most.
    expect(proxy?.bytes).toBeLessThan(size + 50 * 1_300_000);
    const offsets = Array.from(copied.stderr.matchAll(/going on at byte (\d+)/g), ([, offset]) =>
      Number(offset),
    );
    expect(offsets).toEqual([...offsets].sort((one, other) => one - other));
    expect(offsets.at(-1)).toBeGreaterThan(size / 4);
  });

  it("folders go on after a lost connection, with the files that had not arrived", async () => {
    mkdirSync(path.join(local, "tree"));
    for (let index = 0; index < 12; index += 1) fill(path.join(local, `tree/[${index}]`), 512 * 1024);
    const faulty = await throughFaults(2_500_000, 4);
    expect((await faulty.run(["cp", path.join(local, "tree"), `web:${remote}/tree`])).exitCode).toBe(0);
    expect((await faulty.run(["cp", `web:${remote}/tree`, `${local}/back`])).exitCode).toBe(0);
    expect(proxy?.cuts).toBeGreaterThanOrEqual(3);
    for (let index = 0; index < 12; index += 1) {
      expect(digest(path.join(local, `back/[${index}]`))).toBe(digest(path.join(local, `tree/[${index}]`)));
    }
  });

  it("leaves nothing that looks complete when it is killed, and goes on from there", async () => {
    const hash = fill(path.join(remote, "big"), 64 * 1024 * 1024);
    const child = sluice.start(["cp", `web:${remote}/big`, local]);
    const partial = path.join(local, ".big.sluice-partial");
    await eventually(
      "some of it is there",
      () => existsSync(partial) && statSync(partial).size > 1024 * 1024,
      { intervalMs: 1 },
    );
    child.kill("SIGKILL");
    await once(child, "close");
    expect(existsSync(path.join(local, "big"))).toBe(false);
    const faulty = await throughFaults(Number.POSITIVE_INFINITY, 0);
    const kept = statSync(partial).size;
    expect((await faulty.run(["cp", `web:${remote}/big`, local])).exitCode).toBe(0);
    expect(digest(path.join(local, "big"))).toBe(hash);
    expect(proxy?.bytes).toBeLessThan(64 * 1024 * 1024 - kept + 1024 * 1024);
    expect(names(local)).toEqual(["big"]);
  });

  it("a disk that takes no more is an error, and nothing is left", async () => {
    fill(path.join(remote, "big"), 4 * 1024 * 1024);
    const [file, args] = sluiceCommand("cp", `web:${remote}/big`, local);
    const child = spawn("bash", ["-c", 'ulimit -f 1024; exec "$@"', "bash", file, ...args], {
      env: { PATH: process.env.PATH, KUBECONFIG: demo.kubeconfig },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const stderr = collect(child.stderr);
    const [exitCode] = await once(child, "close");
    expect({ exitCode, stderr: stderr() }).toEqual({
      exitCode: 1,
      stderr: "error: write: file too large\n",
    });
    expect(names(local)).toEqual([]);
  });

  it("a file never replaces a folder of its name, and nothing is left", async () => {
    fill(path.join(local, "name"), 100);
    mkdirSync(path.join(remote, "name"));
    const result = await sluice.run(["cp", path.join(local, "name"), `web:${remote}`]);
    expect(result).toMatchObject({ exitCode: 1 });
    expect(result.stderr).toContain(`${remote}/name is a folder`);
    expect(names(remote)).toEqual(["name"]);
  });

  it.each([
    "download",
    "upload",
  ])("a log that grows is copied as it was at the start, and stderr says so: %s", async (way) => {
    const [source, target] = way === "download" ? [remote, local] : [local, remote];
    const file = path.join(source, "log");
    fill(file, 4 * 1024 * 1024);
    const start = readFileSync(file);
    const slow = await throughFaults(2 * 1024 * 1024, 1);
    const ends = way === "download" ? [`web:${file}`, target] : [file, `web:${target}`];
    const child = slow.start(["cp", ...ends, "-v", "4"]);
    const stderr = collect(child.stderr);
    await eventually("the connection was lost", () => stderr().includes("going on at byte"), {
      intervalMs: 1,
    });
    writeFileSync(file, "grown", { flag: "a" });
    const [exitCode] = await once(child, "close");
    expect(stderr()).toContain(`${file} grew while it was read: the copy has its first 4194304 bytes`);
    expect(exitCode).toBe(0);
    expect(readFileSync(path.join(target, "log")).equals(start)).toBe(true);
  });

  it("takes no path whose bytes it cannot be told", async () => {
    fill(path.join(local, "one"), 10);
    const shell = `exec "$0" "$@" "$(printf '%s/caf\\351' "$TARGET")"`;
    const [command, args] = sluiceCommand("cp", path.join(local, "one"));
    const child = spawn("/bin/sh", ["-c", shell, command, ...args], {
      env: { ...process.env, KUBECONFIG: demo.kubeconfig, TARGET: `web:${remote}` },
    });
    const stderr = collect(child.stderr);
    expect((await once(child, "close"))[0]).toBe(2);
    expect(stderr()).toContain("a path is not UTF-8");
    expect(names(remote)).toEqual([]);
  });

  it.each([
    "download",
    "upload",
  ])("a source that changes while it is read is an error, and nothing is left: %s", async (way) => {
    const [source, target] = way === "download" ? [remote, local] : [local, remote];
    fill(path.join(source, "log"), 4 * 1024 * 1024);
    const slow = await throughFaults(2 * 1024 * 1024, 1);
    const ends = way === "download" ? [`web:${source}/log`, target] : [`${source}/log`, `web:${target}`];
    const child = slow.start(["cp", ...ends, "-v", "4"]);
    const stderr = collect(child.stderr);
    await eventually("the connection was lost", () => stderr().includes("going on at byte"), {
      intervalMs: 1,
    });
    writeFileSync(path.join(source, "log"), "shrunk");
    const [exitCode] = await once(child, "close");
    expect(exitCode).toBe(1);
    expect(stderr()).toContain("file changed as we read it");
    expect(names(target)).toEqual([]);
  });

  it.each([
    "none/one",
    "none/deeper/one",
    "file/below",
    "dangling/one",
  ])("a folder that is not there is a failure, and nothing is written elsewhere: %s", async (name) => {
    fill(path.join(local, "one"), 10);
    mkdirSync(path.join(local, "tree"));
    fill(path.join(remote, "file"), 10);
    symlinkSync("nowhere", path.join(remote, "dangling"));
    const [before, root] = [names(folder), readdirSync("/")];
    const base = path.posix.basename(name);
    for (const args of [
      [path.join(local, "one"), `web:${remote}/${name}`],
      [path.join(local, "tree"), `web:${remote}/${name}`],
      ["-", `web:${remote}/${name}`],
      [`web:${remote}/${name}`, local],
    ]) {
      const { exitCode, stdout, stderr } = await sluice.run(["cp", ...args], { input: "stdin" });
      expect([args, exitCode, stdout]).toEqual([args, 1, ""]);
      expect(stderr).toMatch(/^error: in the container, exit code \d: .+\n$/s);
    }
    expect(names(folder)).toEqual(before);
    expect(readdirSync("/")).toEqual(root);
    expect(root).not.toContain(base);
  });

  it("a file for a path that ends in a slash goes into that folder, or nowhere", async () => {
    fill(path.join(local, "one"), 10);
    for (const source of [path.join(local, "one"), "-"]) {
      const result = await sluice.run(["cp", source, `web:${remote}/new/`], { input: "stdin" });
      expect(result).toMatchObject({ exitCode: 1, stderr: `error: ${remote}/new/ is not a folder\n` });
    }
    expect(names(remote)).toEqual([]);
  });

  it.each<[number, RegExp, (paths: { remote: string; local: string }) => string[]]>([
    [1, /^error: .*none: no such file or directory\n$/, ({ remote: r, local: l }) => [`web:${r}/none`, l]],
    [1, /none doesn't exist in local filesystem/, ({ remote: r, local: l }) => [`${l}/none`, `web:${r}/x`]],
    [1, /neither a file nor a folder/, ({ local: l }) => ["web:/dev/null", `${l}/x`]],
    [2, /source and destination are required/, ({ remote: r, local: l }) => [`web:${r}`, "-", l]],
    [2, /one of src or dest must be a remote file specification, \[NAMESPACE\/\]POD:PATH/, () => ["a", "b"]],
    [2, /one of src or dest must be a local file specification, PATH/, () => ["web:a", "web:b"]],
    [2, /filepath can not be empty/, () => ["web:", "b"]],
    [2, /filespec must match the canonical format/, () => ["a/b/c:d", "b"]],
    [1, /Error from server \(NotFound\): pods "nope" not found/, ({ local: l }) => ["nope:/x", l]],
  ])("exits with %i and says %s", async (exitCode, stderr, args) => {
    const result = await sluice.run(["cp", ...args({ remote, local })]);
    expect(result.exitCode).toBe(exitCode);
    expect(result.stderr).toMatch(stderr);
    expect(names(local)).toEqual([]);
  });
});
