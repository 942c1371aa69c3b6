import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setImmediate } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { noProgress } from "../../../packages/client/src/copy/copy-context.ts";
import { CopyError } from "../../../packages/client/src/copy/copy-error.ts";
import { downloadFolder } from "../../../packages/client/src/copy/download-folder.ts";
import type { RemotePath } from "../../../packages/client/src/copy/remote-path.ts";
import type { RemoteShell } from "../../../packages/client/src/copy/remote-shell.ts";
import { SessionError } from "../../../packages/client/src/sessions/session-error.ts";
import { printWarning } from "../../../src/cli/client/report-error.ts";
import type { ShellStreams } from "../local-shell.ts";

/** The time after which a copy counts as hung; an archive of a few KiB takes milliseconds. */
const HANG_MS = 10_000;
const SOURCE: RemotePath = {
  kind: "folder",
  path: "/source",
  size: 0,
  version: "",
  mode: undefined,
  tools: new Set(["tar"] as const),
  hasPartial: false,
};

/**
 * Runs `sluice cp` of a folder whose container prints `archive`. Throws if the copy hangs, fails in
 * an undefined way, leaves files beside the destination or a link in it, prints control characters,
 * or ends differently in parts of `step` bytes.
 */
export async function unpacksSafely(archive: Buffer, step: number): Promise<void> {
  const whole = await copied(archive, archive.length);
  const cut = await copied(archive, step);
  if (!isDeepStrictEqual(whole, cut))
    throw new Error(`in parts of ${step}: ${JSON.stringify(cut)}; whole: ${JSON.stringify(whole)}`);
}

async function copied(archive: Buffer, step: number): Promise<unknown> {
  const root = mkdtempSync(path.join(tmpdir(), "sluice-fuzz-tar-"));
  const [inside, outside] = [path.join(root, "in"), path.join(root, "outside")];
  mkdirSync(inside);
  mkdirSync(outside);
  writeFileSync(path.join(outside, "kept"), "kept");
  const printed: string[] = [];
  const { write } = process.stderr;
  process.stderr.write = (text: string | Uint8Array) => printed.push(String(text)) > 0;
  let timer: NodeJS.Timeout | undefined;
  const hang = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`hangs for ${HANG_MS} ms`)), HANG_MS);
  });
  try {
    const failure = await Promise.race([failureOf(archive, step, path.join(inside, "copied")), hang]);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for them
    const control = printed.find((text) => /[\x00-\x09\x0b-\x1f\x7f-\x9f]/.test(text));
    if (control !== undefined) throw new Error(`prints ${JSON.stringify(control)}`);
    const around = [
      ...readdirSync(root),
      ...readdirSync(outside),
      readFileSync(path.join(outside, "kept"), "utf8"),
    ];
    const left = readdirSync(inside).filter((name) => name !== "copied");
    if (!isDeepStrictEqual(around, ["in", "outside", "kept", "kept"]) || left.length > 0)
      throw new Error(`leaves ${[...around, ...left].join(", ")}`);
    const files = filesIn(inside);
    if (failure !== undefined && files.length > 0)
      throw new Error(`fails (${failure}) and leaves ${files.join(", ")}`);
    // If there are two faults, which one is found first depends on timing.
    return { hasFailed: failure !== undefined, files };
  } finally {
    clearTimeout(timer);
    process.stderr.write = write;
    rmSync(root, { recursive: true, force: true });
  }
}

/** The copy's own failure, as it is printed; undefined if there is none. */
async function failureOf(archive: Buffer, step: number, destination: string): Promise<string | undefined> {
  const shell = {
    script: async (_script: string, _args: readonly string[], { stdout }: ShellStreams = {}) => {
      const stream = stdout as NodeJS.WritableStream & { readonly destroyed: boolean };
      for (let at = 0; at < archive.length && !stream.destroyed; at += step) {
        stream.write(Buffer.from(archive.subarray(at, at + step)));
        // Bytes that wait in a stream are read as one chunk.
        await setImmediate();
      }
      return { exitCode: 0, stdout: "", stderr: "" };
    },
  } as unknown as RemoteShell;
  const options = {
    shell,
    note: () => {},
    retries: 0,
    verifies: false,
    preservesMode: false,
    startProgress: noProgress,
    warn: printWarning,
  };
  try {
    await downloadFolder(SOURCE, destination, options);
    return undefined;
  } catch (error) {
    if (!(error instanceof CopyError) && !(error instanceof SessionError)) throw error;
    return `${error.code}: ${error.message.replaceAll(path.dirname(path.dirname(destination)), "")}`;
  }
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "latin1" })
    .toSorted()
    .map((name) => {
      const file = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name, "latin1")]);
      const stats = lstatSync(file);
      if (stats.isSymbolicLink()) throw new Error(`makes a link, ${JSON.stringify(name)}`);
      return stats.isFile() ? `${name}: ${readFileSync(file, "latin1")}` : name;
    });
}
