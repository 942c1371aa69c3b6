// Builds the Go programs that real tests talk to, into node_modules/.cache/go-peers/NAME, before
// the tests and with its own time limits: with an empty Go cache this takes minutes, afterwards a
// second. Without Go it does nothing, and the tests are skipped.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
/** The modules, and the packages that are built from each. */
const PEERS = {
  kubernetes: { folder: "bench/peers/kubernetes", packages: ["./kube-upstream", "./kube-proxy-go"] },
  // Built with the flags of scripts/build-cluster.mjs, so that they share compiled packages.
  "access-oracle": { folder: "test/real/access-oracle", packages: ["./..."], flags: ["-trimpath"] },
  "probe-servers": { folder: "test/real/probe-servers", packages: ["./..."] },
  "grpc-interop": {
    folder: "test/real/grpc-interop",
    packages: ["google.golang.org/grpc/interop/client", "google.golang.org/grpc/interop/server"],
  },
  // A release that no version of Debian has.
  "newest-containerd": {
    folder: "test/real/newest-containerd",
    packages: ["containerd", "containerd-shim-runc-v2", "ctr"].map(
      (program) => `github.com/containerd/containerd/v2/cmd/${program}`,
    ),
    flags: ["-trimpath", "-ldflags=-s -w"],
  },
};
/** The time limit for one module, including downloads. */
const TIMEOUT_MS = 20 * 60_000;

const isGoThere = spawnSync("go", ["version"], { timeout: 60_000 }).status === 0;
if (!isGoThere) console.log("Go peers: Go is not installed");
for (const [name, { folder, packages, flags = [] }] of isGoThere ? Object.entries(PEERS) : []) {
  const startMs = performance.now();
  const target = path.join(root, "node_modules/.cache/go-peers", name);
  const { status, error } = spawnSync("go", ["build", ...flags, "-o", `${target}/`, ...packages], {
    cwd: path.join(root, folder),
    ...(flags.length > 0 && { env: { ...process.env, CGO_ENABLED: "0" } }),
    stdio: "inherit",
    timeout: TIMEOUT_MS,
  });
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
  if (status === 0) {
    console.log(`Go peers: ${name} built in ${seconds} s`);
    continue;
  }
  // No programs are better than old ones.
  rmSync(target, { recursive: true, force: true });
  console.error(
    `Go peers: ${name} could not be built (${error?.message ?? `status ${status}`}, ${seconds} s)`,
  );
  process.exitCode = 1;
}
