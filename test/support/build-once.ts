import { execFileSync } from "node:child_process";
import path from "node:path";

const script = path.resolve(import.meta.dirname, "../../scripts/build.mjs");

/**
 * Builds before any test file starts: several test files run the compiled program, and two builds
 * at once would collide.
 */
export default function setup(): void {
  execFileSync(process.execPath, [script, "--if-needed"], { stdio: "inherit" });
}
