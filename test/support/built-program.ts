import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");
const program = path.join(root, "dist/bin/sluice.cjs");

/**
 * The path of the compiled `sluice`, as users run it. If a source file is newer, build-once.ts
 * rebuilds it before the run.
 */
export function builtProgram(): string {
  return program;
}

/** The folder with the compiled modules, one for each source file. */
export function compiledSources(): string {
  return path.join(root, "dist/src");
}

/**
 * Arguments of `spawn` for `sluice ARGS`: with this Node.js, or with the single binary that
 * $SLUICE_BINARY names.
 */
export function sluiceCommand(...args: readonly string[]): [file: string, args: string[]] {
  const file = sluiceFile();
  return file === program ? compiledCommand(...args) : [file, [...args]];
}

/**
 * Arguments of `spawn` for `sluice ARGS` with this Node.js, even if there is a single binary: its
 * fake nodes have no terminals.
 */
export function compiledCommand(...args: readonly string[]): [file: string, args: string[]] {
  return [process.execPath, [program, ...args]];
}

/** `sluice` as an executable file: the compiled program, or the single binary. */
export function sluiceFile(): string {
  return process.env.SLUICE_BINARY ?? builtProgram();
}
