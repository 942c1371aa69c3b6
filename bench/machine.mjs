// The machine and the program versions that the figures depend on.
import { execFileSync } from "node:child_process";
import os from "node:os";

const versionOf = (command, args, pattern) => {
  try {
    return pattern.exec(
      execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }),
    )?.[1];
  } catch {
    return undefined;
  }
};

export const nodeVersion = (path) => execFileSync(path, ["--version"], { encoding: "utf8" }).trim().slice(1);

let known;
export function machine() {
  known ??= {
    cpus: os.cpus().length,
    model: os.cpus()[0]?.model,
    memoryGib: Math.round(os.totalmem() / 1024 ** 3),
    kernel: os.release().replace(/-.*/, ""),
    node: process.versions.node,
    go: versionOf("go", ["version"], /go(\d[\d.]*)/),
    kubernetes: "0.36.4",
    haproxy: versionOf("haproxy", ["-v"], /version (\d[\d.]*)/),
  };
  return known;
}
