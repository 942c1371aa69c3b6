import { accessSync, constants, statSync } from "node:fs";
import { join } from "node:path";

type FoundExecutable =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly reason: string };

/** Finds the program for `name`; explains a failure in runc's words, because spawn reports no reason. */
export function findExecutable(name: string, path: string): FoundExecutable {
  if (name === "") return { ok: false, reason: "exec: no command" };
  const quoted = `exec: ${JSON.stringify(name)}`;
  if (name.includes("/")) {
    const problem = problemOf(name);
    return problem === undefined ? { ok: true, path: name } : { ok: false, reason: `${quoted}: ${problem}` };
  }
  for (const directory of path.split(":")) {
    const candidate = join(directory, name);
    if (directory !== "" && problemOf(candidate) === undefined) return { ok: true, path: candidate };
  }
  return { ok: false, reason: `${quoted}: executable file not found in $PATH` };
}

function problemOf(path: string): string | undefined {
  try {
    if (!statSync(path).isFile()) return "is a directory";
  } catch {
    return `stat ${path}: no such file or directory`;
  }
  try {
    accessSync(path, constants.X_OK);
    return undefined;
  } catch {
    return "permission denied";
  }
}
