// Makes what a release's jobs make on their own machines, as far as this machine can.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { project } from "./release-packages.mjs";

const PLATFORMS = "linux/amd64,linux/arm64";
/**
 * The versions of Node.js that programs are built with: the oldest that makes single binaries, and
 * the newest with long-term support.
 */
const NODE_MAJOR = 24;

/**
 * Builds the single binary and the Debian package into the folder. Returns [name, reason] for each
 * that was not built.
 */
export function dryRunParts(folder, skipped) {
  const node = nodeOfPrograms();
  const [deb, strip] = ["dpkg-deb", "strip"].map((program) => spawnSync(program, ["--version"]).status === 0);
  const parts = [
    ["binary", "build-binary.mjs", ["--archive", folder], [[strip, "strip is not installed"]]],
    [
      "deb",
      "build-deb.mjs",
      [folder],
      [
        [deb && strip, "dpkg-deb or strip is not installed"],
        [process.getuid?.() === 0, "its files belong to root: run as root"],
      ],
    ],
  ];
  return parts.flatMap(([name, script, args, needs]) => {
    const title = `${name} (${process.platform}-${process.arch})`;
    if (skipped.includes(name)) return [[title, "left out by --skip"]];
    const [, why] = [[node, NO_NODE], ...needs].find(([isMet]) => !isMet) ?? [];
    if (why !== undefined) return [[title, why]];
    execFileSync(node, [path.join(project, "scripts", script), ...args], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    return [];
  });
}

const NO_NODE = `needs Node.js ${NODE_MAJOR}: npm exec --yes --package=node@${NODE_MAJOR} -- true fetches one`;

/** This Node.js, or one in npm's cache; undefined if neither fits. */
function nodeOfPrograms() {
  if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR) return process.execPath;
  const flags = ["exec", "--yes", "--offline", `--package=node@${NODE_MAJOR}`, "--", "which", "node"];
  const { status, stdout } = spawnSync("npm", flags, { encoding: "utf8", cwd: project });
  return status === 0 ? stdout.trim() : undefined;
}

/** The image is built and pushed by digest, so only its context and command are named. */
export function imageRow() {
  const ignored = readFileSync(path.join(project, ".dockerignore"), "utf8");
  const roots = [...ignored.matchAll(/^!(.+)$/gm)].map(([, name]) => name);
  const listed = execFileSync("git", ["ls-files", "-z", "Dockerfile", ...roots], {
    cwd: project,
    encoding: "utf8",
  });
  const files = listed.split("\0").filter((file) => file !== "");
  const sum = createHash("sha256");
  let size = 0;
  for (const file of files) {
    const bytes = readFileSync(path.join(project, file));
    size += bytes.length;
    sum.update(`${file}\0${bytes.length}\0`).update(bytes);
  }
  const { status } = spawnSync("docker", ["buildx", "ls"], { stdio: "ignore" });
  const engine = spawnSync("docker", ["info"], { stdio: "ignore", timeout: 10_000 }).status === 0;
  const why = engine
    ? "a dry run pushes nothing"
    : status === 0
      ? "no docker engine answers"
      : "docker buildx is not installed";
  return [
    `image (${PLATFORMS})`,
    `${why}; its context is ${files.length} files, ${size} bytes, ${sum.digest("hex")}; docker buildx build . --platform ${PLATFORMS} --provenance mode=max`,
  ];
}
