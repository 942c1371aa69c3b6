import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { builtProgram } from "../support/built-program.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const script = path.join(root, "scripts/release-files.mjs");
const packagesScript = path.join(root, "scripts/release-packages.mjs");
const { changelogProblem } = (await import(packagesScript)) as {
  changelogProblem: (text: string, tag: string) => string | undefined;
};
const chartScript = path.join(root, "scripts/build-chart-archive.mjs");
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
    for (const arch of ["amd64", "arm64"])
      writeFileSync(path.join(folder, `sluice-${version}-linux-${arch}.tar.gz`), arch);
    execFileSync(process.execPath, [script, folder], {
      stdio: "pipe",
      env: { ...process.env, GITHUB_REPOSITORY: "example/sluice" },
    });
    expect(readdirSync(folder).toSorted()).toEqual([
      "SHA256SUMS",
      "krew.yaml",
      `sluice-${version}-linux-amd64.tar.gz`,
      `sluice-${version}-linux-arm64.tar.gz`,
      `sluice-${version}.cdx.json`,
      `sluice-${version}.tgz`,
      `sluice-chart-${version}.tgz`,
      `sluice-client-${version}.tgz`,
      `sluice-protocols-${version}.tgz`,
      "sluice.rb",
    ]);
    const checked = spawnSync("sha256sum", ["--check", "SHA256SUMS"], { cwd: folder, encoding: "utf8" });
    expect([checked.status, checked.stdout.match(/: OK$/gm)?.length]).toEqual([0, 9]);
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
    const check = (tag: string, repository: string) => {
      const env = { ...process.env, GITHUB_REPOSITORY: repository };
      const { status, stderr } = spawnSync(process.execPath, [script, "--check", tag], {
        encoding: "utf8",
        env,
      });
      return { status, lines: stderr.split("\n").filter((line) => line !== "") };
    };
    const changelog = readFileSync(path.join(root, "CHANGELOG.md"), "utf8");
    const undated = [changelogProblem(changelog, `v${version}`) ?? []].flat();
    expect(check(`v${version}`, "example/sluice")).toEqual({ status: undated.length, lines: undated });
    const nameless = "no repository: set GITHUB_REPOSITORY, without which npm refuses provenance";
    expect(check(`v${version}`, "")).toEqual({ status: 1, lines: [nameless, ...undated] });
    for (const tag of ["v0.0.0", version, `v${version}-rc.1`, "main"]) {
      const { status, lines } = check(tag, "example/sluice");
      expect(status).toBe(1);
      for (const name of [".", "protocols", "packages/client", "deploy/chart"])
        expect(lines).toContain(`${name}: version ${version} is not that of ${tag}`);
    }
  });

  it.each([
    ["## 0.1.0, 2026-11-30", undefined],
    ["## 0.1.0, not yet tagged", '"## 0.1.0, not yet tagged" has no date'],
    ["## 0.1.0", '"## 0.1.0" has no date'],
    ["## 0.1.0, 2026-13-30", '"## 0.1.0, 2026-13-30" has no date'],
    ["## 0.1.0-rc.1, 2026-11-30", "no section for v0.1.0"],
    ["## 0.1.01, 2026-11-30", "no section for v0.1.0"],
    ["## Unreleased", "no section for v0.1.0"],
  ])("need a dated section of the changelog: %j", (title, problem) => {
    const found = changelogProblem(`# Changelog\n\n${title}\n\n## 0.0.9, 2026-01-01\n`, "v0.1.0");
    if (problem === undefined) expect(found).toBeUndefined();
    else {
      expect(found).toMatch(/^CHANGELOG\.md: .*"## 0\.1\.0, YYYY-MM-DD"/);
      expect(found).toContain(problem);
    }
  });

  it.each([
    [[], "one of FOLDER, --dry-run and --check is needed"],
    [["--dryrun"], "Unknown option '--dryrun'"],
    [["somewhere", "--dry-run"], "one of FOLDER, --dry-run and --check is needed"],
    [["somewhere", "--skip", "deb"], "--skip is for --dry-run"],
    [["--dry-run", "--skip", "image"], "--skip takes binary and deb, not image"],
    [["--check"], "Option '--check <value>' argument missing"],
  ])("are not made for %j, which is refused in one line", (words, problem) => {
    const { status, stderr } = spawnSync(process.execPath, [script, ...words], { encoding: "utf8" });
    expect(status).toBe(2);
    expect(stderr).toMatch(/^[^\n]+; usage: node scripts\/release-files\.mjs [^\n]+\n$/);
    expect(stderr.startsWith(problem)).toBe(true);
  });

  it("have a chart whose default is the released image, by digest where it is known", () => {
    const digest = `sha256:${"ab".repeat(32)}`;
    const chart = (env: Record<string, string>) => {
      const to = mkdtempSync(path.join(folder, "chart-"));
      const { status, stderr } = spawnSync(process.execPath, [chartScript, to], {
        env: { PATH: process.env.PATH, ...env },
        encoding: "utf8",
      });
      if (status !== 0) return stderr;
      const file = path.join(to, `sluice-chart-${version}.tgz`);
      const values = execFileSync("tar", ["-xzOf", file, "sluice/values.yaml"], { encoding: "utf8" });
      const listed = execFileSync("tar", ["-tzf", file], { encoding: "utf8" }).split("\n");
      expect(listed).toEqual(
        expect.arrayContaining(["sluice/Chart.yaml", "sluice/files/dashboards/overview.json"]),
      );
      return (parse(values) as { image: object }).image;
    };
    const common = { pullPolicy: "IfNotPresent", tag: "" };
    const named = { registry: "ghcr.io", repository: "example/sluice", ...common };
    expect(chart({})).toEqual({ registry: "", repository: "sluice", digest: "", ...common });
    expect(chart({ IMAGE: "ghcr.io/Example/Sluice" })).toEqual({ ...named, digest: "" });
    expect(chart({ IMAGE: "ghcr.io/Example/Sluice", DIGEST: digest })).toEqual({ ...named, digest });
    expect(chart({ DIGEST: digest })).toContain("a digest without an image");
    expect(chart({ IMAGE: "ghcr.io/a/b", DIGEST: "latest" })).toContain("latest is not a digest");
    for (const image of ["sluice", "ghcr.io/a/b:v1", `ghcr.io/a/b@${digest}`, "ghcr.io/a b", "ghcr.io/a/"])
      expect(chart({ IMAGE: image })).toContain(
        `IMAGE is REGISTRY/REPOSITORY without tag or digest, not ${image}`,
      );
    expect(chart({ IMAGE: "registry.example:5000/a/b" })).toMatchObject({
      registry: "registry.example:5000",
    });
  });

  it("are listed with sizes and digests by a dry run, which names what is not made here and why", () => {
    const isFull = process.env.SLUICE_FULL === "1";
    const arguments_ = [script, "--dry-run", ...(isFull ? [] : ["--skip", "binary,deb"])];
    const env = { ...process.env, GITHUB_REPOSITORY: "example/sluice" };
    const printed = execFileSync(process.execPath, arguments_, { encoding: "utf8", env });
    const [listed = "", missing = ""] = printed.split("\nNot made here\n");
    const [written = "", ...rows] = listed.trimEnd().split("\n");
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
      expect(missing).toMatch(
        /^image \(linux\/amd64,linux\/arm64\): .+; its context is \d+ files, \d+ bytes, [0-9a-f]{64}; docker buildx build \. /m,
      );
      const skipped = missing.match(/^(?:binary|deb) \(.*\): (.*)$/gm) ?? [];
      if (isFull) expect(skipped).toEqual([]);
      else expect(skipped).toHaveLength(2);
    } finally {
      rmSync(written, { recursive: true, force: true });
    }
  }, 600_000);

  it("have a manifest for Krew, by the binaries that are there and their checksums", () => {
    const manifest = parse(readFileSync(path.join(folder, "krew.yaml"), "utf8")) as {
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
    expect(readFileSync(path.join(folder, "SHA256SUMS"), "utf8")).toContain("  krew.yaml\n");
    const formula = readFileSync(path.join(folder, "sluice.rb"), "utf8");
    for (const { uri, sha256 } of manifest.spec.platforms)
      expect(formula).toContain(`url "${uri}"\n      sha256 "${sha256}"`);
    expect(formula.match(/^ *(?:class|on_\w+ do|def|test do)/gm)).toHaveLength(
      formula.match(/^ *end$/gm)?.length ?? 0,
    );
  }, 120_000);

  it("come from a workflow whose scripts are here, with as few rights as it needs", () => {
    const text = readFileSync(path.join(root, ".github/workflows/release.yaml"), "utf8");
    const { permissions, defaults, jobs } = parse(text) as {
      defaults: object;
      permissions: object;
      jobs: Record<
        string,
        { needs?: string; permissions?: object; steps: { uses?: string; run?: string }[] }
      >;
    };
    expect(permissions).toEqual({ contents: "read" });
    expect(defaults, "pipefail").toEqual({ run: { shell: "bash" } });
    expect(jobs.npm).toMatchObject({
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
