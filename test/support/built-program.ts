import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");
const program = path.join(root, "dist/bin/sluice.cjs");

/** The path of `sluice` as users run it, compiled; built again first when a source file is newer. */
export function builtProgram(): string {
  if (!existsSync(program) || newestSourceMs() > statSync(program).mtimeMs) {
    execFileSync("npm", ["run", "build"], { cwd: root, stdio: "pipe" });
  }
  return program;
}

/** The folder with the compiled modules, one for each source file. */
export function compiledSources(): string {
  builtProgram();
  return path.join(root, "dist/src");
}

/** `sluice ARGS` for `spawn`: by this Node.js, or by the single binary that $SLUICE_BINARY names. */
export function sluiceCommand(...args: readonly string[]): [file: string, args: string[]] {
  const file = sluiceFile();
  return file === program ? [process.execPath, [file, ...args]] : [file, [...args]];
}

/** `sluice` as a file that the system runs: the compiled program, or the single binary. */
export function sluiceFile(): string {
  return process.env.SLUICE_BINARY ?? builtProgram();
}

function newestSourceMs(): number {
  const files = ["src", "protocols"].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" }).map((name) =>
      path.join(root, folder, name),
    ),
  );
  return Math.max(...files.map((file) => statSync(file).mtimeMs));
}
