// Writes src/api/validation/kubernetes-types.ts: names and types of every field of the kinds that
// Sluice reads, by reflection from the Go types of k8s.io/api in the version that
// test/real/access-oracle pins. Contains only facts, no descriptions.
//
//   node scripts/build-kubernetes-types.mjs            writes the file; needs Go
//   node scripts/build-kubernetes-types.mjs --check    fails if the file is not what this would write
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const file = path.join(root, "src/api/validation/kubernetes-types.ts");
const goModule = path.join(root, "test/real/access-oracle");

const goMod = readFileSync(path.join(goModule, "go.mod"), "utf8");
const [, version] = /^\s*k8s\.io\/kubernetes v(\S+)$/m.exec(goMod) ?? [];
const { status, stdout, error } = spawnSync(
  "go",
  ["run", "-trimpath", path.join(root, "scripts/kubernetes-types.go")],
  {
    cwd: goModule,
    env: { ...process.env, CGO_ENABLED: "0" },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  },
);
if (status !== 0 || version === undefined) {
  console.error(`the types could not be read: ${error?.message ?? `go run ended with ${status}`}`);
  process.exit(1);
}
const text = `/**
 * Written by scripts/build-kubernetes-types.mjs, not by hand: every type of Kubernetes ${version}
 * of the kinds that Sluice reads, one a line. src/api/validation/kubernetes-shapes.ts
 * reads them.
 */
export const KUBERNETES_TYPES = \`
${stdout}\`;
`;
if (!process.argv.includes("--check")) writeFileSync(file, text);
else if (readFileSync(file, "utf8") !== text) {
  console.error(
    `${path.relative(root, file)} is not of Kubernetes ${version}: node scripts/build-kubernetes-types.mjs`,
  );
  process.exitCode = 1;
}
