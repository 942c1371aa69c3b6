/**
 * CPU milliseconds of this process during `work`. On a busy machine, wall-clock times grow, and
 * those of long runs most. Not for tests in a pool of threads, which share a process.
 */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
