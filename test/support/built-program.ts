import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import path from "node:path";

const root = path.resolve(import.meta.dirname, "../..");
const program = path.join(root, "dist/src/main.js");

/** The path of `sluice` as users run it, compiled; built again first when a source file is newer. */
export function builtProgram(): string {
  if (!existsSync(program) || newestSourceMs() > statSync(program).mtimeMs) {
    execFileSync("npm", ["run", "build"], { cwd: root, stdio: "pipe" });
  }
  return program;
}

function newestSourceMs(): number {
  const files = ["src", "protocols"].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: "utf8" }).map((name) =>
      path.join(root, folder, name),
    ),
  );
  return Math.max(...files.map((file) => statSync(file).mtimeMs));
}
