import { availableParallelism } from "node:os";
import { setFlagsFromString } from "node:v8";
import { isSingleBinary } from "@sluice/client/internal/config/version";

// The first: without incremental marking V8 scavenges the buffers of chunks that were read, which die young; with it, a heap above 8 MiB
// is marked as a whole after some 32 MiB of them. The second, in MiB: the young generation doubles with set-ups and never shrinks; half
// of an idle session's memory was that. docs/evidence/performance.md has the figures.
const NO_INCREMENTAL_MARKING = "--no-incremental-marking";
const GATEWAY_FLAGS = [NO_INCREMENTAL_MARKING, "--max-semi-space-size=8"];
/**
 * With one processor, V8's threads run instead of the event loop: four of them held requests up for
 * 50 to 110 ms beside a stranger's flood. docs/evidence/fairness.md has the figures.
 */
const ONE_PROCESSOR_FLAGS = ["--single-threaded-gc", "--v8-pool-size=1"];

/**
 * glibc keeps this many freed pieces of each size, up to 1 KiB, for the thread that freed them. With
 * its default of 7, what thousands of TLS sessions free at their end joins lists that malloc searches
 * for each of OpenSSL's buffers. docs/evidence/ends-and-reloads.md has the figures.
 */
const MALLOC_SETTING = "glibc.malloc.tcache_count=65535";

const { execve } = process as {
  execve?: (file: string, args: string[], env?: NodeJS.ProcessEnv) => never;
};

/**
 * execve ends the channel to a parent and closes a service manager's sockets (libuv marks them
 * close-on-exec).
 */
const canRestart =
  execve !== undefined &&
  process.platform !== "win32" &&
  process.send === undefined &&
  process.env.LISTEN_FDS === undefined;

/**
 * Restarts Node with V8's flags, as the same process. Client commands skip it, because flags
 * invalidate the caches that Node starts from.
 */
export function useGatewayFlags(): void {
  if (isSingleBinary) {
    useBinaryFlags();
    return;
  }
  const missing = missingFlags();
  // glibc reads it at the start of a process. Forked workers inherit it.
  process.env.GLIBC_TUNABLES = mallocSettings(process.env.GLIBC_TUNABLES);
  if (missing.length === 0) return;
  // Node 20 and Windows have no execve. V8 accepts the first flag late, while its heap is small.
  if (!canRestart) {
    if (missing.includes(NO_INCREMENTAL_MARKING)) setFlagsFromString(NO_INCREMENTAL_MARKING);
    // Forked workers inherit them.
    process.execArgv.push(...missing);
    return;
  }
  const args = [...process.execArgv, ...missing, ...process.argv.slice(1)];
  execve?.call(process, process.execPath, [process.execPath, ...args]);
}

/** A setting that is given stays. */
function mallocSettings(given: string | undefined): string {
  if (given?.includes("tcache_count")) return given;
  return given ? `${given}:${MALLOC_SETTING}` : MALLOC_SETTING;
}

/** Flags for so many processors; undefined if Node cannot restart: V8 accepts some flags only at its start. */
function gatewayFlags(processors: number | undefined): readonly string[] {
  return processors === 1 ? [...GATEWAY_FLAGS, ...ONE_PROCESSOR_FLAGS] : GATEWAY_FLAGS;
}

/** A flag that Node already has stays, such as `--incremental-marking` or another size. */
function missingFlags(): string[] {
  const { NODE_OPTIONS: options = "" } = process.env;
  const given = new Set([...process.execArgv, ...options.split(/\s+/)].map(settingOf));
  return gatewayFlags(canRestart ? availableParallelism() : undefined).filter(
    (flag) => !given.has(settingOf(flag)),
  );
}

/** A flag without its value: V8 takes `_` for `-`, and `no-` turns one off. */
function settingOf(flag: string): string {
  return flag
    .replaceAll("_", "-")
    .replace(/^--(?:no-)?/, "")
    .replace(/=.*$/s, "");
}

/**
 * The single binary treats its arguments as its own. $NODE_OPTIONS accepts only the second flag;
 * workers inherit it.
 */
function useBinaryFlags(): void {
  setFlagsFromString(NO_INCREMENTAL_MARKING);
  const { NODE_OPTIONS: options = "", GLIBC_TUNABLES: tunables, ...env } = process.env;
  if (options.includes("--max-semi-space-size") || !canRestart) return;
  const args = [process.argv0, ...process.argv.slice(2)];
  execve?.call(process, process.execPath, args, {
    ...env,
    GLIBC_TUNABLES: mallocSettings(tunables),
    NODE_OPTIONS: `${options} ${GATEWAY_FLAGS[1]}`.trim(),
  });
}
