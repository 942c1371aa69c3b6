import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const script = fileURLToPath(new URL("../../../scripts/build-cluster.mjs", import.meta.url));
/** In the place of Go: a program is the line that `go version -m` has for its module, and $BROKEN cannot be built. */
const GO = `#!/bin/sh
[ "$1" = version ] && exec cat "$3"
for package; do :; done
while [ "$1" != -o ]; do shift; done
case $package in *"$BROKEN") exit 1;; esac
module=$(echo "$package" | sed -E 's,^(k8s.io/kubernetes|sigs.k8s.io/metrics-server|helm.sh/helm/v4)/.*,\\1,')
awk -v m="$module" '$1 == m { printf "\\tmod\\t%s\\t%s\\t\\n", m, $2 }' go.mod >"$2"
`;

describe("npm run build:cluster", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), "sluice-build-cluster-"));
    mkdirSync(path.join(folder, "path"));
    writeFileSync(path.join(folder, "path/go"), GO, { mode: 0o755 });
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const build = (broken = "nothing", ...wanted: string[]) =>
    spawnSync(process.execPath, [script, ...wanted], {
      encoding: "utf8",
      env: { PATH: `${folder}/path:${process.env.PATH}`, SLUICE_CLUSTER_DIR: folder, BROKEN: broken },
    });
  const programs = (): string[] => readdirSync(path.join(folder, "bin")).sort();

  it("builds every program into an empty cache, and none of them again", () => {
    const first = build();
    expect(first).toMatchObject({ status: 0, stderr: "" });
    const count = programs().length;
    expect(programs()).toEqual(expect.arrayContaining(["kube-apiserver", "kubelet", "e2e.test", "helm"]));
    expect(first.stdout.match(/ built in \d/g)).toHaveLength(count);
    const second = build();
    expect(second).toMatchObject({ status: 0, stderr: "" });
    expect(second.stdout.match(/ is there$/gm)).toHaveLength(count);
  });

  it.each([
    ["cmd/kubelet", 1],
    ["test/e2e", 0],
  ])("ends with its own status where %s cannot be built: %i", (broken, status) => {
    const built = build(broken);
    expect(built.status).toBe(status);
    expect(built.stderr).toContain(
      `${broken.replace("test/e2e", "e2e.test").replace("cmd/", "")} could not be built`,
    );
    expect(programs()).toEqual(expect.arrayContaining(["kube-apiserver"]));
  });

  it("builds the programs that are named alone, and then needs each of them", () => {
    expect(build("nothing", "helm")).toMatchObject({ status: 0, stderr: "" });
    expect(programs()).toEqual(["helm"]);
    expect(build("cmd/helm", "helm").stdout).toContain("is there");
    rmSync(path.join(folder, "bin/helm"));
    expect(build("cmd/helm", "helm")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("helm could not be built"),
    });
    expect(build("nothing", "heml").stderr).toContain("heml is none of the programs");
  });
});
