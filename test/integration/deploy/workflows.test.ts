import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}
interface Workflow {
  readonly permissions?: object;
  readonly jobs: Readonly<Record<string, { readonly permissions?: object; readonly steps: readonly Step[] }>>;
}

const folder = new URL("../../../.github/workflows/", import.meta.url);

describe.each(readdirSync(folder))("the workflow %s", (file) => {
  const text = readFileSync(new URL(file, folder), "utf8");
  const { permissions, jobs } = parse(text) as Workflow;
  const steps = Object.values(jobs).flatMap((job) => job.steps);

  it("names each action by a commit, with the release that it is", () => {
    const used = [...text.matchAll(/\buses: (.*)$/gm)].map(([, action]) => action);
    expect(used.length).toBeGreaterThan(0);
    for (const action of used) expect(action).toMatch(/^[\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it("writes nothing but where a job says so", () => {
    expect(permissions).toEqual({ contents: "read" });
  });

  it("runs no script of a dependency, and hands no cache and no credential from job to job", () => {
    const installs = steps.filter(({ run }) => /\bnpm (ci|install|publish)\b/.test(run ?? ""));
    expect(installs.length).toBeGreaterThan(0);
    for (const { run } of installs) expect(run).toContain("--ignore-scripts");
    for (const { uses = "", with: options = {} } of steps) {
      if (uses.startsWith("actions/checkout@")) expect(options["persist-credentials"]).toBe(false);
      if (!uses.startsWith("actions/setup-node@")) continue;
      expect(options).toMatchObject({ "package-manager-cache": false });
      expect(options.cache).toBeUndefined();
    }
  });
});
