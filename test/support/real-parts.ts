import { describe, it } from "vitest";
import {
  type Binary,
  type Containerd,
  findAsciinemas,
  findClusterPrograms,
  findContainerds,
  findKubectls,
  findProgram,
  type Kubectl,
} from "./real-parts-finder.ts";

declare module "vitest" {
  interface TaskMeta {
    /** The real parts that a test needs. The closing table counts them. */
    realParts?: readonly RealPart[];
  }
}

/** Another project's program that tests talk to. */
export type RealPart =
  | "kubectl"
  | "containerd"
  | "cluster"
  | "chromium"
  | "go"
  | "nginx"
  | "haproxy"
  | "envoy"
  | "tinyproxy"
  | "asciinema"
  | "versitygw"
  | "redis"
  | "promtool"
  | "docker"
  | "helm";

export const realParts: readonly RealPart[] = [
  "kubectl",
  "containerd",
  "cluster",
  "chromium",
  "go",
  "nginx",
  "haproxy",
  "envoy",
  "tinyproxy",
  "asciinema",
  "versitygw",
  "redis",
  "promtool",
  "docker",
  "helm",
];

export interface RealPartState {
  /** The versions that were found; empty if the part is missing. */
  versions: readonly string[];
  /** Why tests of this part cannot run here; `undefined` if they can. */
  missing: string | undefined;
}

/** Which versions of a part this machine has. The answer is cached for the life of the process. */
export function stateOf(part: RealPart): RealPartState {
  const versions = versionsOf(part);
  if (part === "cluster") return { versions, missing: clusterObstacle(versions) };
  if (versions.length === 0)
    return { versions, missing: part === "docker" ? "no docker engine answers" : `${part} is not installed` };
  return { versions, missing: part === "containerd" ? containerdObstacle() : undefined };
}

/**
 * True if SLUICE_REQUIRE (a comma-separated list) names the part: then its tests may fail, but not
 * be skipped.
 */
export function isRequired(part: RealPart): boolean {
  return (process.env.SLUICE_REQUIRE ?? "").split(",").some((name) => name.trim() === part);
}

/**
 * `describe` for tests that need real parts. If one is missing, the tests are skipped and the
 * closing table says why; if SLUICE_REQUIRE names it, a failing test says so.
 */
export function describeReal(needed: RealPart | readonly RealPart[], name: string, tests: () => void): void {
  const parts: readonly RealPart[] = typeof needed === "string" ? [needed] : needed;
  const missing = parts.filter((part) => stateOf(part).missing !== undefined);
  const meta = { realParts: parts };
  if (missing.length === 0) {
    describe(name, { meta }, tests);
    return;
  }
  const reasons = missing.map((part) => stateOf(part).missing).join("; ");
  if (missing.some(isRequired)) {
    it(name, { meta }, () => {
      throw new Error(`SLUICE_REQUIRE asks for what is missing: ${reasons}`);
    });
    return;
  }
  describe.skip(`${name} (${reasons})`, { meta }, tests);
}

/**
 * With SLUICE_FULL=1, and when evidence is written, a matrix has every release of kubectl and the
 * largest copies.
 */
export const isFullRun = process.env.SLUICE_FULL === "1" || process.env.SLUICE_WRITE_DOCS === "1";

/** `describeReal` for tests that take minutes: other runs skip them, and the closing table says so. */
export function describeFull(needed: readonly RealPart[], name: string, tests: () => void): void {
  if (isFullRun) describeReal(needed, name, tests);
  else describe.skip(`${name} (SLUICE_FULL=1)`, { meta: { realParts: needed } }, tests);
}

/**
 * For use inside `describeReal("kubectl", ...)`. The oldest first: in a full run every release
 * found, otherwise a sample.
 */
export function kubectls(): readonly Kubectl[] {
  return isFullRun ? findKubectls() : kubectlSample();
}

/**
 * The oldest release, the last one that does not support WebSocket (or else the middle one), and
 * the newest.
 */
export function kubectlSample(): readonly Kubectl[] {
  const all = findKubectls();
  const lastSpdyOnly = all.findLast((kubectl) => kubectl.minor < 29) ?? all[Math.floor(all.length / 2)];
  return [...new Set([all[0], lastSpdyOnly, all.at(-1)])].filter((kubectl) => kubectl !== undefined);
}

/**
 * For matrices with many cells: ordinary runs have only the oldest and the newest, and name the
 * others as skipped.
 */
export function oldestAndNewest(sample: readonly Kubectl[]): readonly Kubectl[] {
  if (isFullRun) return sample;
  for (const { version } of sample.slice(1, -1)) it.skip(`kubectl ${version} (SLUICE_FULL=1)`);
  return sample.filter((kubectl) => kubectl === sample[0] || kubectl === sample.at(-1));
}

/** For use inside `describeReal("containerd", ...)`. The installed one comes first. */
export function containerds(): readonly Containerd[] {
  return findContainerds();
}

/** For use inside `describeReal("asciinema", ...)`. The oldest comes first. */
export function asciinemas(): readonly Binary[] {
  return findAsciinemas();
}

const PROGRAMS: Readonly<
  Record<
    Exclude<RealPart, "kubectl" | "containerd" | "cluster" | "asciinema">,
    Parameters<typeof findProgram>
  >
> = {
  go: [["go"], ["version"], /go(\d+\.\d+(?:\.\d+)?)/],
  chromium: [["chromium", "chromium-browser", "google-chrome"], ["--version"], /(\d+\.\d+\.\d+)/],
  nginx: [["nginx"], ["-v"], /nginx\/(\d+\.\d+\.\d+)/],
  versitygw: [["versitygw"], ["--version"], /Version\s*:\s*(\S+)/],
  tinyproxy: [["tinyproxy"], ["-v"], /tinyproxy (\d+\.\d+\.\d+)/],
  haproxy: [["haproxy"], ["-v"], /version (\d+\.\d+\.\d+)/],
  envoy: [["envoy"], ["--version"], /\/(\d+\.\d+\.\d+)\//],
  // Debian's redis-tools has the server under this name, and the program acts by the name it is
  // called by.
  redis: [["redis-server", "valkey-server", "redis-check-rdb"], ["--version"], /(\d+\.\d+\.\d+)/],
  helm: [["helm"], ["version", "--short"], /v(\d+\.\d+(?:\.\d+)?)/],
  // The engine's version, because the client alone starts no container.
  docker: [["docker"], ["info", "--format", "engine {{.ServerVersion}}"], /engine (\d+\.\d+\.\d+)/],
  promtool: [["promtool"], ["--version"], /version (\d+\.\d+\.\d+)/],
};

/** The path of a part that is a single program, inside its `describeReal`. */
export function programOf(part: keyof typeof PROGRAMS): string {
  const found = findProgram(...PROGRAMS[part]);
  if (found === undefined) throw new Error(`${part} is not installed`);
  return found.path;
}

/** The packaged containerd that a current kubelet can use; the kubelet does not support 1.x. */
export function newestContainerd(): Containerd | undefined {
  const usable = findContainerds().filter(
    ({ version, isBuilt }) => !isBuilt && Number.parseInt(version, 10) >= 2,
  );
  return usable.sort((a, b) => a.version.localeCompare(b.version, "en", { numeric: true })).at(-1);
}

function versionsOf(part: RealPart): readonly string[] {
  if (part === "cluster") return findClusterPrograms()?.versions ?? [];
  if (part === "kubectl") return findKubectls().map((kubectl) => kubectl.version);
  if (part === "containerd") return findContainerds().map((containerd) => containerd.version);
  if (part === "asciinema") return findAsciinemas().map((asciinema) => asciinema.version);
  const program = findProgram(...PROGRAMS[part]);
  return program === undefined ? [] : [program.version];
}

/** containerd alone runs no container: it needs a runtime, content for an image, and root. */
function containerdObstacle(): string | undefined {
  if (process.getuid?.() !== 0) return "containerd needs root for namespaces, mounts and cgroups";
  if (!findProgram(["runc"], ["--version"], /runc version (\S+)/))
    return "containerd needs runc, which is not installed";
  if (!findProgram(["busybox"], ["--help"], /BusyBox v(\d+\.\d+\.\d+)/)) {
    return "containerd's test images need busybox-static, which is not installed";
  }
  return undefined;
}

/**
 * A cluster needs Kubernetes' own programs, which `npm run build:cluster` builds, and all that
 * containerd needs.
 */
function clusterObstacle(versions: readonly string[]): string | undefined {
  if (versions.length === 0) return "a cluster's programs are not built: npm run build:cluster";
  if (newestContainerd() === undefined) return "a cluster needs containerd 2, which is not installed";
  if (!findProgram(["ip"], ["-V"], /iproute2-(\d+\.\d+)/))
    return "a cluster's pods need iproute2, which is not installed";
  return containerdObstacle();
}
