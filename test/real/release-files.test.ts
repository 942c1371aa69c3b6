import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { builtProgram } from "../support/built-program.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const script = path.join(root, "scripts/release-files.mjs");
const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};
const { version } = manifest;

interface KrewPlatform {
  readonly selector: { readonly matchLabels: { readonly os: string; readonly arch: string } };
  readonly uri: string;
  readonly sha256: string;
  readonly bin: string;
  readonly files: readonly { readonly from: string; readonly to: string }[];
}

interface Component {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

describe("the files of a release", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-release-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("are the npm packages, an SBOM of what it installs, and checksums that sha256sum confirms", () => {
    builtProgram();
    execFileSync(process.execPath, [script, folder], { stdio: "pipe" });
    expect(readdirSync(folder).toSorted()).toEqual([
      "SHA256SUMS",
      `sluice-${version}.cdx.json`,
      `sluice-${version}.tgz`,
      `sluice-client-${version}.tgz`,
      `sluice-protocols-${version}.tgz`,
    ]);
    const checked = spawnSync("sha256sum", ["--check", "SHA256SUMS"], { cwd: folder, encoding: "utf8" });
    expect([checked.status, checked.stdout.match(/: OK$/gm)?.length]).toEqual([0, 4]);
    const bill = JSON.parse(readFileSync(path.join(folder, `sluice-${version}.cdx.json`), "utf8")) as {
      bomFormat: string;
      specVersion: string;
      metadata: { component: { name: string; version: string } };
      components: readonly Component[];
    };
    expect(bill).toMatchObject({
      bomFormat: "CycloneDX",
      metadata: { component: { name: "sluice", version } },
    });
    const versions = new Map(bill.components.map((component) => [component.name, component]));
    for (const [name, wanted] of Object.entries(manifest.dependencies)) {
      expect(versions.get(name)).toMatchObject({ version: wanted, purl: `pkg:npm/${name}@${wanted}` });
      expect(versions.get(name)?.hashes?.[0]).toMatchObject({ alg: "SHA-512" });
    }
    for (const name of ["vitest", "typescript", "ws", "autocannon", "@kubernetes/client-node"]) {
      expect(manifest.devDependencies).toHaveProperty([name]);
      expect(versions.has(name)).toBe(false);
    }
  }, 120_000);

  it("are refused for a tag that is not the version, and without a repository that npm could attest", () => {
    const { status, stderr } = spawnSync(process.execPath, [script, "--check", "v0.0.0"], {
      encoding: "utf8",
    });
    expect(status).toBe(1);
    expect(stderr).toContain(`version ${version} is not that of v0.0.0`);
  });

  it("are listed with sizes and digests by a dry run, which publishes nothing", () => {
    const printed = execFileSync(process.execPath, [script, "--dry-run"], { encoding: "utf8" });
    const [written = "", ...rows] = printed.trimEnd().split("\n");
    try {
      expect(rows.map((row) => row.split("  ")[0])).toEqual(
        readdirSync(written)
          .filter((name) => name !== "SHA256SUMS")
          .toSorted(),
      );
      for (const row of rows) {
        const [name = "", size, digest] = row.split("  ");
        const bytes = readFileSync(path.join(written, name));
        expect([Number(size), digest]).toEqual([
          bytes.length,
          createHash("sha256").update(bytes).digest("hex"),
        ]);
      }
    } finally {
      rmSync(written, { recursive: true, force: true });
    }
  }, 120_000);

  it("have a manifest for Krew, by the binaries that are there and their checksums", () => {
    const binaries = path.join(folder, "with-binaries");
    mkdirSync(binaries);
    for (const arch of ["amd64", "arm64"])
      writeFileSync(path.join(binaries, `sluice-${version}-linux-${arch}.tar.gz`), arch);
    execFileSync(process.execPath, [script, binaries], {
      stdio: "pipe",
      env: { ...process.env, GITHUB_REPOSITORY: "example/sluice" },
    });
    const manifest = parse(readFileSync(path.join(binaries, "krew.yaml"), "utf8")) as {
      spec: { version: string; shortDescription: string; platforms: KrewPlatform[] };
    };
    expect(manifest).toMatchObject({
      apiVersion: "krew.googlecontainertools.github.com/v1alpha2",
      kind: "Plugin",
      metadata: { name: "sluice" },
      spec: { version: `v${version}`, homepage: "https://github.com/example/sluice" },
    });
    // Krew's index takes no longer one, and a full stop at its end neither.
    expect(manifest.spec.shortDescription).toMatch(/^.{1,49}[^.]$/);
    expect(manifest.spec.platforms).toHaveLength(2);
    for (const { selector, uri, sha256, bin, files } of manifest.spec.platforms) {
      const { os, arch } = selector.matchLabels;
      const name = `sluice-${version}-${os}-${arch}.tar.gz`;
      expect(uri).toBe(`https://github.com/example/sluice/releases/download/v${version}/${name}`);
      expect(sha256).toBe(createHash("sha256").update(arch).digest("hex"));
      expect(files).toContainEqual({ from: bin, to: "." });
      expect(files).toContainEqual({ from: "LICENSE", to: "." });
    }
    expect(readFileSync(path.join(binaries, "SHA256SUMS"), "utf8")).toContain("  krew.yaml\n");
    const formula = readFileSync(path.join(binaries, "sluice.rb"), "utf8");
    for (const { uri, sha256 } of manifest.spec.platforms)
      expect(formula).toContain(`url "${uri}"\n      sha256 "${sha256}"`);
    expect(formula.match(/^ *(?:class|on_\w+ do|def|test do)/gm)).toHaveLength(
      formula.match(/^ *end$/gm)?.length ?? 0,
    );
  }, 120_000);

  it("come from a workflow whose scripts are here, with as few rights as it needs", () => {
    const text = readFileSync(path.join(root, ".github/workflows/release.yaml"), "utf8");
    const { permissions, jobs } = parse(text) as {
      permissions: object;
      jobs: Record<
        string,
        { needs?: string; permissions?: object; steps: { uses?: string; run?: string }[] }
      >;
    };
    expect(permissions).toEqual({ contents: "read" });
    expect(jobs["npm"]).toMatchObject({
      needs: "test",
      permissions: { contents: "read", "id-token": "write" },
    });
    const steps = Object.values(jobs).flatMap((job) => job.steps);
    for (const { uses } of steps)
      if (uses !== undefined)
        expect(uses).toMatch(/^(actions\/[\w-]+|sigstore\/cosign-installer)@[0-9a-f]{40}$/);
    const scripts = steps.flatMap(({ run = "" }) => run.match(/scripts\/[\w-]+\.mjs/g) ?? []);
    expect(scripts).toContain("scripts/release-files.mjs");
    for (const name of scripts) expect(existsSync(path.join(root, name))).toBe(true);
  });
});
