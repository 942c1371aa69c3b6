import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parse } from "yaml";

const root = path.resolve(import.meta.dirname, "../..");
const COMMIT = "c".repeat(40);
const [AMD64, ARM64] = ["a".repeat(64), "b".repeat(64)];
const TAG = "registry.example/example/sluice:1.2.3";

interface Step {
  readonly id?: string;
  readonly run?: string;
}

const { jobs } = parse(readFileSync(path.join(root, ".github/workflows/release.yaml"), "utf8")) as {
  jobs: Record<string, { readonly steps: readonly Step[] }>;
};

/** The script of a job's step that runs this command. */
function scriptOf(job: string, command: string): string {
  const found = jobs[job]?.steps.find(({ run = "" }) => run.includes(command))?.run;
  return found ?? expect.unreachable(`${job} has a step with ${command}`);
}

/** A registry whose tags are files: `image` has the commit of the tag that is there. */
const DOCKER = `#!/bin/bash
echo "docker $*" >> calls
case "$*" in
  *inspect*.Image*) [ -e image ] || exit 1
    label="{\\"config\\":{\\"Labels\\":{\\"org.opencontainers.image.revision\\":\\"$(cat image)\\"}}}"
    echo "{\\"linux/amd64\\":$label,\\"linux/arm64\\":$label}" ;;
  *inspect*.Manifest*) echo '{"digest":"sha256:1234"}' ;;
  *create*) printf %s "$GITHUB_SHA" > image ;;
esac
`;
/** GitHub's releases: the file \`release-state\` says whether this one is a draft. */
const GH = `#!/bin/bash
echo "gh $*" >> calls
case "$2" in
  view) [ -e release-state ] || exit 1; cat release-state ;;
  create) echo true > release-state ;;
  upload) [ ! -e upload-fails ] ;;
  edit) echo false > release-state ;;
esac
`;

describe.skipIf(spawnSync("jq", ["--version"]).status !== 0)("steps of the release (need jq)", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-steps-"));
    for (const each of ["bin", "digests", "release"]) mkdirSync(path.join(folder, each));
    for (const [name, program] of [
      ["docker", DOCKER],
      ["gh", GH],
    ] as const) {
      writeFileSync(path.join(folder, "bin", name), program);
      chmodSync(path.join(folder, "bin", name), 0o755);
    }
    put("release/SHA256SUMS", "");
    for (const digest of [AMD64, ARM64]) put(`digests/${digest}`, "");
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  function put(name: string, text: string): void {
    writeFileSync(path.join(folder, name), text);
  }

  /** Runs as GitHub does with `shell: bash`. Returns the status and what was asked of the programs. */
  function run(script: string): { readonly status: number | null; readonly calls: readonly string[] } {
    const calls = path.join(folder, "calls");
    rmSync(calls, { force: true });
    const { status } = spawnSync("bash", ["--noprofile", "--norc", "-eo", "pipefail", "-c", script], {
      cwd: folder,
      env: {
        PATH: `${path.join(folder, "bin")}:${process.env.PATH}`,
        IMAGE: "registry.example/Example/sluice",
        GITHUB_REF_NAME: "v1.2.3",
        GITHUB_SHA: COMMIT,
        GITHUB_OUTPUT: path.join(folder, "output"),
        GITHUB_STEP_SUMMARY: path.join(folder, "summary"),
      },
    });
    const lines = existsSync(calls) ? readFileSync(calls, "utf8").trimEnd().split("\n") : [];
    return { status, calls: lines };
  }
  const creations = (calls: readonly string[]) => calls.filter((call) => / create /.test(call));

  describe("the image's index", () => {
    const script = scriptOf("image-index", "imagetools create");
    const output = () => readFileSync(path.join(folder, "output"), "utf8");

    it("names both images, and a second run leaves it and has the same digest", () => {
      const first = run(script);
      expect(first.status).toBe(0);
      const names = [AMD64, ARM64].map((digest) => `registry.example/example/sluice@sha256:${digest}`);
      expect(creations(first.calls)).toEqual([
        `docker buildx imagetools create --tag ${TAG} ${names.join(" ")}`,
      ]);
      const printed = "name=registry.example/example/sluice\ndigest=sha256:1234\n";
      expect(output()).toBe(printed);
      const second = run(script);
      expect([second.status, creations(second.calls)]).toEqual([0, []]);
      expect(output()).toBe(printed.repeat(2));
    });

    it("is not made of one image, nor over the tag of another commit", () => {
      rmSync(path.join(folder, `digests/${ARM64}`));
      const half = run(script);
      expect([half.status, creations(half.calls)]).toEqual([1, []]);
      put(`digests/${ARM64}`, "");
      put("image", "d".repeat(40));
      const other = run(script);
      expect([other.status, creations(other.calls)]).toEqual([1, []]);
      expect(existsSync(path.join(folder, "output"))).toBe(false);
    });
  });

  it("the release is a draft while an upload fails; the next run completes it, and none replaces its files", () => {
    const script = scriptOf("release", "gh release upload");
    const verbs = ({ calls }: { readonly calls: readonly string[] }) =>
      calls.map((call) => call.split(" ")[2]);
    const state = () => readFileSync(path.join(folder, "release-state"), "utf8").trim();
    put("upload-fails", "");
    const first = run(script);
    expect([first.status, verbs(first), state()]).toEqual([1, ["view", "create", "upload"], "true"]);
    rmSync(path.join(folder, "upload-fails"));
    const second = run(script);
    expect([second.status, verbs(second), state()]).toEqual([0, ["view", "upload", "edit"], "false"]);
    const third = run(script);
    expect([third.status, verbs(third), state()]).toEqual([0, ["view"], "false"]);
  });
});
