// Builds the programs of a Kubernetes cluster, and helm, from the modules in test/cluster into a
// cache, for `npm run test:cluster`. With an empty cache this takes 15 minutes on two cores;
// Kubernetes' own tests, an older API server and helm take 6 each, metrics-server one. A program
// that the cache has in the right version is kept. SLUICE_CLUSTER_DIR names another cache.
//
//   node scripts/build-cluster.mjs [PROGRAM...]      these alone; status 1 where one could not be built
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const folderOf = (name) => fileURLToPath(new URL(`../test/cluster/${name}/`, import.meta.url));
const cache = process.env.SLUICE_CLUSTER_DIR ?? path.join(homedir(), ".cache/sluice/cluster");
/** The time limit for each group's programs together, including downloads. */
const TIMEOUT_MS = 60 * 60_000;
const GROUPS = [
  {
    module_: folderOf("kubernetes"),
    isNeeded: true,
    programs: {
      etcd: "go.etcd.io/etcd/server/v3",
      "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
      "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
      "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
      kubelet: "k8s.io/kubernetes/cmd/kubelet",
      kubectl: "k8s.io/kubernetes/cmd/kubectl",
    },
  },
  // Kubernetes' own tests, and the program in their pods. Without them test/cluster/e2e is skipped.
  {
    module_: folderOf("kubernetes"),
    programs: {
      agnhost: "k8s.io/kubernetes/test/images/agnhost",
      "e2e.test": "k8s.io/kubernetes/test/e2e",
    },
  },
  // The older API server, for SLUICE_API_SERVER=oldest.
  {
    module_: folderOf("oldest"),
    programs: { "kube-apiserver-oldest": "k8s.io/kubernetes/cmd/kube-apiserver" },
  },
  // metrics-server, for test/cluster/metrics-server.
  {
    module_: folderOf("metrics-server"),
    programs: { "metrics-server": "sigs.k8s.io/metrics-server/cmd/metrics-server" },
  },
  // helm, for the tests of the chart.
  { module_: folderOf("helm"), programs: { helm: "helm.sh/helm/v4/cmd/helm" } },
];

/** The module that contains a package, and the module's version in a go.mod. */
function moduleOf(package_, module_) {
  const goMod = readFileSync(path.join(module_, "go.mod"), "utf8");
  const name = package_.replace(
    /^(k8s\.io\/kubernetes|sigs\.k8s\.io\/metrics-server|helm\.sh\/helm\/v4)\/.*/,
    "$1",
  );
  const version = new RegExp(`^\\s*${name.replaceAll(".", "\\.")} (v\\S+)`, "m").exec(goMod)?.[1];
  if (version === undefined) throw new Error(`go.mod does not require ${name}`);
  return { name, version };
}

function isBuilt(file, { name, version }) {
  if (!existsSync(file)) return false;
  const { stdout } = spawnSync("go", ["version", "-m", file], { encoding: "utf8" });
  return stdout.split("\n").some((line) => line.startsWith(`\tmod\t${name}\t${version}\t`));
}

/** The version that the programs print, as in a release. */
function linkerFlags(name, version) {
  if (name.startsWith("helm.sh/")) return `-s -w -X ${name}/internal/version.version=${version}`;
  const [major, minor] = version.slice(1).split(".");
  const fields = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: "clean" };
  const settings = Object.entries(fields).map(
    ([field, value]) => `-X k8s.io/component-base/version.${field}=${value}`,
  );
  return ["-s", "-w", ...settings, `-X k8s.io/client-go/pkg/version.gitVersion=${version}`].join(" ");
}

/** Returns true if the program exists in the end. */
function build(program, package_, module_, timeoutMs) {
  const file = path.join(cache, "bin", program);
  const { name, version } = moduleOf(package_, module_);
  if (isBuilt(file, { name, version })) {
    console.log(`cluster: ${program} ${version} is there`);
    return true;
  }
  const beginMs = performance.now();
  const partial = `${file}.partial`;
  const flags = ["-trimpath", "-p", "2", "-ldflags", linkerFlags(name, version)];
  const command = program.endsWith(".test") ? ["test", "-c"] : ["build"];
  const { status, error } = spawnSync("go", [...command, ...flags, "-o", partial, package_], {
    cwd: module_,
    env: { ...process.env, CGO_ENABLED: "0" },
    stdio: "inherit",
    timeout: Math.max(1, Math.ceil(timeoutMs)),
  });
  const seconds = ((performance.now() - beginMs) / 1_000).toFixed(1);
  if (status !== 0) {
    const reason = error?.message ?? `status ${status}`;
    console.error(`cluster: ${program} could not be built (${reason}, ${seconds} s)`);
    return false;
  }
  // Only a complete program gets its final name.
  renameSync(partial, file);
  console.log(`cluster: ${program} ${version} built in ${seconds} s`);
  return true;
}

mkdirSync(path.join(cache, "bin"), { recursive: true });
const wanted = process.argv.slice(2);
const unknown = wanted.find((name) => !GROUPS.some(({ programs }) => name in programs));
if (unknown !== undefined) throw new Error(`${unknown} is none of the programs`);
for (const { programs, module_, isNeeded } of GROUPS) {
  const endMs = performance.now() + TIMEOUT_MS;
  const isWhole = Object.entries(programs)
    .filter(([program]) => wanted.length === 0 || wanted.includes(program))
    .every(([program, package_]) => build(program, package_, module_, endMs - performance.now()));
  if (!isWhole && (isNeeded || wanted.length > 0)) process.exit(1);
}
