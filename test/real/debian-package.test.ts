import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/command-list.ts";
import { builtProgram } from "../support/built-program.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const has = (program: string): boolean => spawnSync(program, ["--version"]).status === 0;
const canBuild = has("dpkg-deb") && has("strip") && process.getuid?.() === 0;

describe.skipIf(!canBuild)("the Debian package (needs dpkg-deb, strip and root)", () => {
  const scratch = mkdtempSync(path.join(tmpdir(), "sluice-deb-test-"));
  const at = (name: string) => path.join(scratch, "root", name);
  let file: string;
  beforeAll(() => {
    builtProgram();
    const script = path.join(root, "scripts/build-deb.mjs");
    file = execFileSync(process.execPath, [script, scratch, "none"], { encoding: "utf8" }).trim();
    execFileSync("dpkg-deb", ["-x", file, at("")]);
  }, 300_000);
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  it("is one that dpkg reads, for this version, with the sums of its files", () => {
    const fields = execFileSync("dpkg-deb", ["-f", file], { encoding: "utf8" });
    const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
      version: string;
    };
    expect(fields).toContain(`Version: ${version}\n`);
    const sums = execFileSync("dpkg-deb", ["--ctrl-tarfile", file], { maxBuffer: 1 << 26 });
    const text = execFileSync("tar", ["-xO", "./md5sums"], {
      input: sums,
      encoding: "utf8",
      maxBuffer: 1 << 26,
    });
    const lines = text.trimEnd().split("\n");
    expect(lines.length).toBeGreaterThan(100);
    for (const line of lines) {
      const [sum, name = ""] = line.split("  ");
      expect([
        name,
        createHash("md5")
          .update(readFileSync(at(name)))
          .digest("hex"),
      ]).toEqual([name, sum]);
    }
  });

  it("has root's files, that nobody else may write", () => {
    const listed = execFileSync("dpkg-deb", ["-c", file], { encoding: "utf8", maxBuffer: 1 << 26 })
      .trimEnd()
      .split("\n");
    const wrong = listed.filter((line) => !/^[-dl]rw[-xt]r.[-xt]r.[-xt] root\/root |^l/.test(line));
    expect(wrong).toEqual([]);
  });

  it("runs with its own Node.js, and has the manifests that it installs", () => {
    const run = (...args: string[]) =>
      execFileSync(at("usr/lib/sluice/node"), [at("usr/lib/sluice/dist/bin/sluice.cjs"), ...args]).toString();
    expect(run("exec", "--help")).toContain("sluice exec");
    expect(run("install", "--dry-run")).toContain("kind: Deployment");
    expect(readFileSync(at("usr/bin/sluice"), "utf8")).toContain("exec /usr/lib/sluice/node");
  });

  it("has a page for each command, which man reads without a warning", () => {
    const pages = readdirSync(at("usr/share/man/man1"));
    expect(pages.toSorted()).toEqual(
      ["sluice.1.gz", ...COMMANDS.map(({ name }) => `sluice-${name}.1.gz`)].toSorted(),
    );
    if (!has("man")) return;
    for (const page of [...pages.map((name) => `man1/${name}`), "man5/sluice.yaml.5.gz"]) {
      const { stderr, status } = spawnSync("man", ["--warnings", "-l", at(`usr/share/man/${page}`)], {
        encoding: "utf8",
      });
      expect([page, stderr, status]).toEqual([page, "", 0]);
    }
  });

  describe.skipIf(!has("systemd-analyze"))("its units (needs systemd-analyze)", () => {
    const units = () => at("lib/systemd/system");

    it("are a service that systemd finds hardened", () => {
      const unit = path.join(units(), "sluice.service");
      const { status, stdout } = spawnSync(
        "systemd-analyze",
        ["security", "--offline=true", "--threshold=20", unit],
        { encoding: "utf8" },
      );
      expect([status, stdout]).toEqual([0, expect.stringContaining("OK")]);
      // systemd's own judgement does not count it: a dump would hold keys and tokens.
      expect(readFileSync(unit, "utf8")).toMatch(/^LimitCORE=0$/m);
    });

    it("are the service and a socket for it, disabled, which systemd reads without a warning", () => {
      expect(readdirSync(units()).toSorted()).toEqual(["sluice-api.socket", "sluice.service"]);
      expect(readdirSync(at("etc"))).toEqual(["sluice"]);
      const installed = path.join(scratch, "units");
      mkdirSync(installed);
      const files = readdirSync(units()).map((name) => {
        const file = path.join(installed, name);
        // systemd looks for the program, which is not installed here.
        const text = readFileSync(path.join(units(), name), "utf8");
        writeFileSync(file, text.replace(/^ExecStart=/m, `ExecStart=${at("")}`));
        return file;
      });
      const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", ...files], {
        encoding: "utf8",
      });
      expect([status, stderr]).toEqual([0, ""]);
    });
  });
});
