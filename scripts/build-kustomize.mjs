// Writes deploy/kustomize, which `sluice install` prints and `kubectl kustomize` builds, from the
// chart as helm renders it. Finds helm in PATH or $HELM. With `--check` only compares, and exits
// with 1 if a file is stale.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const chart = fileURLToPath(new URL("../deploy/chart", import.meta.url));
/** Certificates and keys are given, so that every rendering is the same. */
const ROLES = {
  gateway: [
    "--set",
    "gateway.tls.existingSecret=sluice-gateway-tls,gateway.peers.existingSecret=sluice-gateway-peers",
  ],
  bastion: ["--values", `${chart}/ci/bastion-values.yaml`],
  ingress: ["--set", "gateway.enabled=false,ingress.enabled=true"],
  node: [
    "--set",
    "gateway.enabled=false,node.enabled=true,node.tls.hostPath=/var/lib/kubelet/pki,node.clientCA.existingConfigMap=sluice-node-client-ca",
  ],
  // `sluice load job` sets the number, the arguments and the namespace.
  load: [
    "--set",
    "gateway.enabled=false,load.enabled=true,load.arguments={exec,web,--sessions=2},load.ttlSecondsAfterFinished=3600",
  ],
};

/** A load runs in the namespace of the pods in which it opens sessions. */
const namespaceOf = (role) => (role === "load" ? "default" : "sluice");
const namespace = (role) => `apiVersion: v1
kind: Namespace
metadata:
  name: sluice
  labels:
    pod-security.kubernetes.io/enforce: ${role === "node" ? "privileged" : "restricted"}
`;
const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - manifests.yaml
`;

function manifestsOf(role) {
  const options = ["--namespace", namespaceOf(role), "--skip-tests", ...ROLES[role]];
  const rendered = execFileSync(helm, ["template", "sluice", chart, ...options], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
  // Helm adds these, but neither helm nor a release manages the result.
  const own = rendered
    .replace(/^ *(helm\.sh\/chart|app\.kubernetes\.io\/managed-by): .*\n|^# Source: .*\n/gm, "")
    // A single Job, with a fixed name to wait for.
    .replace(/^( +name: sluice-load)-\w{8}$/m, "$1")
    .replace(/\n+---\n/g, "\n---\n");
  const all = role === "load" ? own.replace(/^---\n/, "") : `${namespace(role)}${own}`;
  return `# Made from deploy/chart by scripts/build-kustomize.mjs.\n${all.trimEnd()}\n`;
}

const helm = process.env.HELM ?? "helm";
if (spawnSync(helm, ["version"]).status !== 0) {
  console.error("helm is not installed: deploy/kustomize stays as it is");
  process.exit(process.argv.includes("--check") ? 1 : 0);
}
const stale = Object.keys(ROLES)
  .flatMap((role) => [
    [`${role}/manifests.yaml`, manifestsOf(role)],
    [`${role}/kustomization.yaml`, kustomization],
  ])
  .map(([name, text]) => [new URL(`../deploy/kustomize/${name}`, import.meta.url), text])
  .filter(([file, text]) => !existsSync(file) || readFileSync(file, "utf8") !== text);
if (process.argv.includes("--check")) {
  for (const [file] of stale)
    console.error(`${fileURLToPath(file)} is stale: node scripts/build-kustomize.mjs`);
  process.exitCode = stale.length === 0 ? 0 : 1;
} else {
  for (const [file, text] of stale) {
    mkdirSync(new URL(".", file), { recursive: true });
    writeFileSync(file, text);
  }
}
