/**
 * CPU milliseconds of this process during `work`: a busy machine stretches the clock's, long runs' more than short ones'.
 * Not for tests in the pool of threads, which share a process.
 */
export function cpuMsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}
