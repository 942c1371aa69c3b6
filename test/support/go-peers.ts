import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");

/** For vitest, before the real tests: builds them. What could not be built is a matter of the tests that need it. */
export default function setup(): void {
  spawnSync(process.execPath, [path.join(root, "scripts/build-go-peers.mjs")], { stdio: "inherit" });
}

/** The path of a program that `scripts/build-go-peers.mjs` has built. */
export function goPeer(module: "kubernetes" | "probe-servers" | "grpc-interop", program: string): string {
  const file = path.join(root, "node_modules/.cache/go-peers", module, program);
  if (!existsSync(file)) throw new Error(`${program} was not built: see the beginning of this run`);
  return file;
}
