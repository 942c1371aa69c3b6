import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");

/**
 * A vitest set-up that builds the peers before the real tests. A peer that could not be built is
 * reported by the tests that need it.
 */
export default function setup(): void {
  spawnSync(process.execPath, [path.join(root, "scripts/build-go-peers.mjs")], { stdio: "inherit" });
}

type GoPeerModule = "access-oracle" | "kubernetes" | "newest-containerd" | "probe-servers" | "grpc-interop";

/** The path of a program that `scripts/build-go-peers.mjs` has built. */
export function goPeer(module: GoPeerModule, program: string): string {
  const file = fileOf(module, program);
  if (!existsSync(file)) throw new Error(`${program} was not built: see the beginning of this run`);
  return file;
}

export function isGoPeerBuilt(module: GoPeerModule, program: string): boolean {
  return existsSync(fileOf(module, program));
}

/** The folder of a module's programs, built or not. */
export function goPeerFolder(module: GoPeerModule): string {
  return path.join(root, "node_modules/.cache/go-peers", module);
}

function fileOf(module: GoPeerModule, program: string): string {
  return path.join(goPeerFolder(module), program);
}
