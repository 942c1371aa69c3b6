// Builds the Go module of peers/kubernetes: the upstream, the load client and Kubernetes' own handlers.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const source = fileURLToPath(new URL("peers/kubernetes", import.meta.url));

/** Paths of the built programs. Throws an error that says what is missing. */
export function buildKubernetesPeers(folder) {
  try {
    execFileSync("go", ["version"], { stdio: "ignore" });
  } catch {
    throw new Error(
      "Go 1.26 or newer is needed: the load client is client-go, the node Kubernetes' streaming server.\n" +
        "Without Go, `node bench/budget.mjs` compares Sluice and the plain pipe with peers of this repository.",
    );
  }
  process.stderr.write("building Kubernetes' client, server and handlers (minutes at the first time)\n");
  execFileSync("go", ["build", "-o", `${folder}/`, "./kube-upstream", "./kube-proxy-go", "./kube-load"], {
    cwd: source,
    stdio: "inherit",
  });
  const built = (name) => path.join(folder, name);
  return { upstream: built("kube-upstream"), proxy: built("kube-proxy-go"), load: built("kube-load") };
}
