import { execFile, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";

const root = path.resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
const QUIET = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

/** Why packages cannot be installed here; undefined if they can. */
export function registryObstacle(): string | undefined {
  try {
    execFileSync("npm", ["view", "yaml", "version", "--fetch-retries=0", "--fetch-timeout=15000"], {
      stdio: "pipe",
      timeout: 30_000,
    });
    return undefined;
  } catch {
    return "no package registry can be reached";
  }
}

/** A package as users have it: packed, and installed into an empty folder. */
export class InstalledPackage {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /**
   * `folders` are folders of the repository with a package.json ("." is `sluice` as it is
   * published); flags are npm's.
   */
  static async install(folders: readonly string[], flags: readonly string[] = []): Promise<InstalledPackage> {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-installed-"));
    const packed = path.join(folder, "packed");
    mkdirSync(packed);
    const archives: string[] = [];
    for (const name of folders) {
      const source = name === "." ? path.join(folder, "staged") : path.join(root, name);
      if (name === ".")
        await run(process.execPath, [
          path.join(root, "scripts/release-packages.mjs"),
          "--stage",
          ".",
          source,
        ]);
      const pack = ["pack", "--json", "--ignore-scripts", "--loglevel=error", "--pack-destination", packed];
      const { stdout } = await run("npm", pack, { cwd: source, maxBuffer: 64 * 1024 * 1024 });
      const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
      archives.push(path.join(packed, filename));
    }
    writeFileSync(path.join(folder, "package.json"), '{ "private": true, "type": "module" }');
    await run("npm", ["install", ...QUIET, ...flags, ...archives], { cwd: folder });
    return new InstalledPackage(folder);
  }

  /** The disk space of node_modules in MB of 10^6 bytes; blocks count whole, as in `du`. */
  megabytesOnDisk(): number {
    const kibibytes = execFileSync("du", ["-sk", path.join(this.folder, "node_modules")], {
      encoding: "utf8",
    });
    return (Number.parseInt(kibibytes, 10) * 1024) / 1e6;
  }

  /** Runs a program of the folder. Returns its output and exit code. */
  async run(program: string, ...args: readonly string[]): Promise<{ code: number; output: string }> {
    const command = [path.join(this.folder, program), ...args];
    return run(process.execPath, command, { cwd: this.folder, timeout: 60_000 }).then(
      ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
      (error: { code: number; stdout: string; stderr: string }) => ({
        code: error.code,
        output: error.stdout + error.stderr,
      }),
    );
  }

  write(name: string, text: string): void {
    writeFileSync(path.join(this.folder, name), text);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
