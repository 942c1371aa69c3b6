/** What the programs of clients print of a pod of the demo if all works. */
export const CLIENT_CHECKS = {
  exit_code: ["out\n", "err\n", 3],
  download: [5 * 1024 * 1024, "1000000000\n", 0],
  upload: true,
  forwards: 20,
};

/** A line for each pod. */
export function checksIn(printed: string): unknown[] {
  return printed
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}
