import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");
const program = path.join(root, "dist/bin/sluice.cjs");

/** The path of `sluice` as users run it, compiled: build-once.ts builds it again before the run when a source file is newer. */
export function builtProgram(): string {
  return program;
}

/** The folder with the compiled modules, one for each source file. */
export function compiledSources(): string {
  return path.join(root, "dist/src");
}

/** `sluice ARGS` for `spawn`: by this Node.js, or by the single binary that $SLUICE_BINARY names. */
export function sluiceCommand(...args: readonly string[]): [file: string, args: string[]] {
  const file = sluiceFile();
  return file === program ? compiledCommand(...args) : [file, [...args]];
}

/** `sluice ARGS` for `spawn`, by this Node.js even beside a single binary, whose fake nodes have no terminals. */
export function compiledCommand(...args: readonly string[]): [file: string, args: string[]] {
  return [process.execPath, [program, ...args]];
}

/** `sluice` as a file that the system runs: the compiled program, or the single binary. */
export function sluiceFile(): string {
  return process.env.SLUICE_BINARY ?? builtProgram();
}
