import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { sluiceFile } from "./built-program.ts";

const root = path.resolve(import.meta.dirname, "../..");
const BLOCK = /^```(sh|text)\n([\s\S]*?)^```$/gm;
const SET_UP = /^```sh\n(npm ci\n[\s\S]*?)^```$/m;
/** How long a page may take. Past it the page's shell is ended, and the test fails. */
const MOST_MS = 100_000;
const BETWEEN = "=== the next block ===";

/**
 * A block of a page's commands, with the output that the page shows; `...` in it matches anything.
 */
export interface TypedBlock {
  readonly commands: string;
  readonly printed: string;
  /** Lines of the page that were not printed. */
  readonly missing: readonly string[];
}

/**
 * Types every `sh` block of a page into one shell, as a newcomer would: after the set-up in
 * docs/README.md, with an empty home, in a folder with the files that pages use of a checkout. A
 * command that fails ends the shell.
 */
export async function typePage(page: string): Promise<{ status: number; blocks: readonly TypedBlock[] }> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-typed-"));
  try {
    const found = [...readFileSync(path.join(root, "docs", page), "utf8").matchAll(BLOCK)];
    const steps = found.flatMap(([, kind, commands = ""], index) => {
      if (kind !== "sh") return [];
      const [, next, lines = ""] = found[index + 1] ?? [];
      return [{ commands, expected: next === "text" ? lines.trimEnd().split("\n") : [] }];
    });
    mkdirSync(path.join(folder, "home"));
    for (const name of ["deploy", "node_modules"])
      symlinkSync(path.join(root, name), path.join(folder, name));
    const script = steps.map(({ commands }) => commands).join(`\necho '${BETWEEN}'\n`);
    const trap = "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT";
    const shell = spawn("bash", ["-e", "-c", `${trap}\n${setUp(folder)}\n${script}`], {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: path.join(folder, "home") },
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const end = () => endGroup(shell.pid);
    const timer = setTimeout(end, MOST_MS);
    shell.once("exit", end);
    const [printed, problems, [status]] = await Promise.all([
      text(shell.stdout),
      text(shell.stderr),
      once(shell, "exit"),
    ]);
    clearTimeout(timer);
    const outputs = printed.split(`${BETWEEN}\n`);
    const blocks = steps.slice(0, outputs.length).map(({ commands, expected }, index) => {
      const isLast = index === outputs.length - 1;
      const output = `${outputs[index]}${isLast && status !== 0 ? problems : ""}`;
      return { commands, printed: output, missing: missingLines(expected, output) };
    });
    return { status: (status as number | null) ?? -1, blocks };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * The block of docs/README.md that comes before every page. This checkout already had its `npm ci`,
 * which would take minutes and the network. A single binary replaces what it installed.
 */
function setUp(folder: string): string {
  const [, block] = SET_UP.exec(readFileSync(path.join(root, "docs/README.md"), "utf8")) ?? [];
  if (block === undefined) throw new Error("docs/README.md has no block that begins with npm ci");
  const [, ...lines] = block.split("\n");
  if (process.env.SLUICE_BINARY === undefined) return lines.join("\n");
  mkdirSync(path.join(folder, "bin"));
  symlinkSync(sluiceFile(), path.join(folder, "bin/sluice"));
  return [...lines, `export PATH="${folder}/bin:$PATH"`].join("\n");
}

/** Also finds programs that outlive their starter, such as a gateway's successor. */
function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGTERM");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Lines must be printed in this order. */
function missingLines(expected: readonly string[], printed: string): string[] {
  const lines = printed.split("\n").map((line) => line.trim().replace(/ {2,}/g, " "));
  let from = 0;
  return expected.filter((wanted) => {
    const parts = wanted.trim().replace(/ {2,}/g, " ").split("...");
    const pattern = new RegExp(
      `^${parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`,
    );
    const at = lines.findIndex((line, index) => index >= from && pattern.test(line));
    if (at !== -1) from = at + 1;
    return at === -1;
  });
}
