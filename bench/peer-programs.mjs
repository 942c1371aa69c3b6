// Client and node of a run: Kubernetes' own, from the Go module in peers/kubernetes, or this
// repository's if there is no Go.
import { execFileSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const source = fileURLToPath(new URL("peers/kubernetes", import.meta.url));

/** Go 1.26 or newer is found on the path. */
export function hasGo() {
  try {
    const [, minor] = /go1\.(\d+)/.exec(execFileSync("go", ["version"], { encoding: "utf8" })) ?? [];
    return Number(minor) >= 26;
  } catch {
    return false;
  }
}

/** The commands of the built programs. */
export function buildKubernetesPeers(folder) {
  process.stderr.write("building Kubernetes' client, server and handlers (minutes at the first time)\n");
  execFileSync("go", ["build", "-o", `${folder}/`, "./kube-upstream", "./kube-proxy-go", "./kube-load"], {
    cwd: source,
    stdio: "inherit",
  });
  const built = (name) => [path.join(folder, name)];
  return {
    name: "Kubernetes",
    load: built("kube-load"),
    proxy: built("kube-proxy-go"),
    upstream: ({ certFile } = {}) => [
      ...built("kube-upstream"),
      "-listen",
      "127.0.0.1:0",
      ...(certFile === undefined ? [] : ["-tls"]),
    ],
  };
}

/**
 * This repository's client and node, for machines without Go. They include neither Kubernetes'
 * handlers nor a WebSocket node.
 */
export function nodePeers() {
  const script = (name) => [process.execPath, fileURLToPath(new URL(`peers/${name}`, import.meta.url))];
  return {
    name: "this repository",
    load: script("load-client.mjs"),
    proxy: undefined,
    upstream: ({ certFile, keyFile } = {}) => [
      ...script("upstream.mjs"),
      ...(certFile === undefined ? [] : ["-tls", `${certFile},${keyFile}`]),
    ],
  };
}
