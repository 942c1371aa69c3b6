import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { fuzzTargets } from "../../support/fuzz/targets.ts";

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}
interface Job {
  readonly needs?: string | readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly strategy?: {
    readonly matrix: {
      readonly include?: readonly Readonly<Record<string, string>>[];
      readonly target?: readonly string[];
    };
  };
  readonly permissions?: object;
  readonly steps: readonly Step[];
  readonly container?: { readonly image: string };
}
interface Workflow {
  readonly permissions?: object;
  readonly env?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const root = new URL("../../../", import.meta.url);
const folder = new URL(".github/workflows/", root);
const script = readFileSync(new URL(".ci/run", root), "utf8");

it("ci runs .ci/run for each change, in the image that the Dockerfile names", () => {
  const { jobs } = parse(readFileSync(new URL("ci.yaml", folder), "utf8")) as Workflow;
  expect(jobs.run?.steps.at(-1)).toEqual({ run: ".ci/run" });
  const [, image] = /^ARG NODE_IMAGE=(.*)$/m.exec(readFileSync(new URL("Dockerfile", root), "utf8")) ?? [];
  expect(jobs.run?.container?.image).toBe(image);
  expect(statSync(new URL(".ci/run", root)).mode & 0o111).not.toBe(0);
});

it(".ci/run names tests that exist: one that is gone would be left out without a word", () => {
  const braces = /\{([^}]*)\}/;
  const expand = (word: string): string[] => {
    const [found, list] = braces.exec(word) ?? [];
    if (found === undefined || list === undefined) return [word];
    return list.split(",").map((one) => word.replace(found, one));
  };
  const named = (
    script.match(/\btest\/(?:integration|cluster|real|fuzz|architecture)\/[\w./{},-]+/g) ?? []
  ).flatMap(expand);
  expect(named.length).toBeGreaterThan(15);
  const isThere = (name: string): boolean =>
    existsSync(new URL(name, root)) || existsSync(new URL(`${name}.test.ts`, root));
  expect(named.filter((name) => !isThere(name))).toEqual([]);
});

it("each night every fuzz target is searched", () => {
  const { jobs } = parse(readFileSync(new URL("fuzz.yaml", folder), "utf8")) as Workflow;
  for (const job of [jobs.search, jobs.libfuzzer])
    expect(job?.strategy?.matrix.target?.toSorted()).toEqual(Object.keys(fuzzTargets).toSorted());
});

describe("the release's container image", () => {
  const { jobs, env } = parse(readFileSync(new URL("release.yaml", folder), "utf8")) as Workflow;
  const { image, "image-index": index, "image-sbom": bill, release } = jobs;
  const textOf = (job: Job | undefined): string =>
    (job?.steps ?? [])
      .map(({ run, uses, with: options }) => run ?? JSON.stringify({ uses, options }))
      .join("\n");

  it("is built of tested source, for each architecture on a machine that has it, and starts before it is named", () => {
    expect(image?.needs).toBe("test");
    expect(image?.strategy?.matrix.include).toEqual([
      { runner: "ubuntu-24.04", architecture: "amd64" },
      { runner: "ubuntu-24.04-arm", architecture: "arm64" },
    ]);
    expect(textOf(image)).toContain("push-by-digest=true");
    expect(textOf(image)).toContain("--provenance mode=max");
    expect(textOf(image)).toContain(`docker run --rm --read-only "\${IMAGE,,}@$digest" --version`);
    expect(textOf(image)).not.toMatch(/--tag|type=registry/);
  });

  it("goes to the registry that one variable names, by jobs that may write nothing else", () => {
    expect(env).toEqual({
      REGISTRY: `\${{ vars.REGISTRY || 'ghcr.io' }}`,
      IMAGE: `\${{ vars.REGISTRY || 'ghcr.io' }}/\${{ github.repository }}`,
    });
    for (const job of [image, index, bill, release]) {
      expect(job?.env?.IMAGE).toBeUndefined();
      expect(textOf(job)).not.toMatch(/\b[\w-]+\.(?:io|com|dev|org)\b(?=[/ ])/);
    }
    expect(image?.permissions).toEqual({ contents: "read", packages: "write" });
    expect(index?.permissions).toEqual({
      contents: "read",
      packages: "write",
      "id-token": "write",
      attestations: "write",
    });
  });

  it("is signed and attested by its digest: provenance, and the release's SBOM", () => {
    const subject = {
      "subject-name": `\${{ steps.index.outputs.name }}`,
      "subject-digest": `\${{ steps.index.outputs.digest }}`,
      "push-to-registry": true,
    };
    expect([index?.needs, bill?.needs]).toEqual(["image", ["image-index", "release"]]);
    expect(textOf(index)).toContain("cosign sign --yes --recursive");
    const attested = [...(index?.steps ?? []), ...(bill?.steps ?? [])].filter(({ uses }) =>
      uses?.startsWith("actions/attest"),
    );
    expect(attested.map(({ uses, with: options }) => [uses?.split("@")[0], options])).toEqual([
      ["actions/attest-build-provenance", subject],
      [
        "actions/attest",
        {
          "subject-name": `\${{ env.NAME }}`,
          "subject-digest": `\${{ needs.image-index.outputs.digest }}`,
          "sbom-path": "bill.cdx.json",
          "push-to-registry": true,
        },
      ],
    ]);
  });

  it("is the chart's, by digest, and a release is a draft until all of its files are there", () => {
    expect(release?.needs).toEqual(["test", "binary", "image-index"]);
    expect(release?.env).toEqual({ DIGEST: `\${{ needs.image-index.outputs.digest }}` });
    const text = textOf(release);
    expect(text).toContain('cosign sign --yes "$CHART"');
    const [view, create, upload, edit] = ["view", "create", "upload", "edit"].map((verb) =>
      text.indexOf(`gh release ${verb} "$GITHUB_REF_NAME"`),
    );
    expect(text).toMatch(/gh release create .* --draft --verify-tag/);
    expect(text).toMatch(/gh release upload .* --clobber/);
    expect([view, create, upload, edit].toSorted((a = 0, b = 0) => a - b)).toEqual([
      view,
      create,
      upload,
      edit,
    ]);
    expect(view).toBeGreaterThan(0);
  });
});

describe.each(readdirSync(folder))("the workflow %s", (file) => {
  const text = readFileSync(new URL(file, folder), "utf8");
  const { permissions, jobs } = parse(text) as Workflow;
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  it("names each action by a commit, with the release that it is", () => {
    const used = [...text.matchAll(/\buses: (.*)$/gm)].map(([, action]) => action);
    expect(used.length).toBeGreaterThan(0);
    for (const action of used) expect(action).toMatch(/^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it("names each image by a digest", () => {
    for (const { container } of Object.values(jobs))
      if (container !== undefined) expect(container.image).toMatch(/@sha256:[0-9a-f]{64}$/);
  });

  it("writes nothing but where a job says so", () => {
    expect(permissions).toEqual({ contents: "read" });
  });

  it("runs no script of a dependency, and hands no cache and no credential from job to job", () => {
    const installs = steps
      .flatMap(({ run = "" }) => (run === ".ci/run" ? script.split("\n") : run))
      .filter((run) => /(?:^|&& )npm (ci|install|publish)\b/.test(run));
    expect(installs.length).toBeGreaterThan(0);
    for (const run of installs) expect(run).toContain("--ignore-scripts");
    for (const { uses = "", with: options = {} } of steps) {
      if (uses.startsWith("actions/checkout@")) expect(options["persist-credentials"]).toBe(false);
      if (!uses.startsWith("actions/setup-node@")) continue;
      expect(options).toMatchObject({ "package-manager-cache": false });
      expect(options.cache).toBeUndefined();
    }
  });
});
