import { constants } from "node:fs";
import { chmod, lstat, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import type { Writable } from "node:stream";
import type { PartTaker } from "../sessions/output-sink.ts";
import type { CopyContext, CopyProgress } from "./copy-context.ts";
import { CopyError, localError, withRetries } from "./copy-error.ts";
import { FileWriter } from "./file-writer.ts";
import { canHash, HASH_FUNCTION, hashIn, RunningHash } from "./hashing.ts";
import { changedWhileRead, warnOfGrowth } from "./remote-growth.ts";
import type { RemotePath } from "./remote-path.ts";
import type { RemoteShell } from "./remote-shell.ts";
import { remoteFailure } from "./remote-shell.ts";

/** Prints the SHA-256 of a file's first `$2` bytes. */
const HASH_START = `head -c "$2" "$1" | if command -v openssl >/dev/null 2>&1; then openssl dgst -sha256; else sha256sum; fi`;

const ignored = (): void => {};

const RESUME = constants.O_RDWR | constants.O_NOFOLLOW;
/**
 * Up to this size one command sends bytes and SHA-256; for larger files a second command hashes
 * meanwhile.
 */
const HASHED_ALONG_BYTES = 1024 * 1024;
/** After the last byte, prints the file's present state on stderr and, with a `$3`, its SHA-256. */
const AFTERWARDS = `s=$(stat -L -c '%s %Y %i' "$1" 2>/dev/null) || s=$(wc -c < "$1")
echo "afterwards $s" >&2; if [ -n "$3" ]; then h "$1" >&2; fi`;
/**
 * `$4` limits the bytes, because a file that is being written may never end. A file with size 0, as
 * in /proc, is read to its end.
 */
const READ_ALL = `${HASH_FUNCTION}if [ "$4" -gt 0 ] && command -v head >/dev/null 2>&1; then head -c "$4" "$1"
else cat "$1"; fi || exit $?; ${AFTERWARDS}`;
const READ_FROM = `${HASH_FUNCTION}if [ "$4" -gt 0 ] && command -v head >/dev/null 2>&1; then tail -c +"$2" "$1" | head -c "$4"
else tail -c +"$2" "$1"; fi || exit $?; ${AFTERWARDS}`;

/**
 * Copies a file to `destination`, which appears complete or not at all. A later call, too, resumes
 * an interrupted copy if the source is the same. Throws CopyError, ConnectError, SessionError.
 */
export async function downloadFile(
  source: RemotePath,
  destination: string,
  options: CopyContext,
): Promise<void> {
  const partial = path.join(path.dirname(destination), `.${path.basename(destination)}.sluice-partial`);
  const note = `${partial}.of`;
  const progress = await options.startProgress(path.basename(destination), source.size);
  const download = new Download(source, options, progress);
  try {
    const isSame = source.version !== "" && (await readFile(note, "utf8").catch(() => "")) === source.version;
    if (!isSame) await rm(partial, { force: true });
    await rm(note, { force: true });
    await writeFile(note, source.version, { flag: "wx" });
    await withRetries(() => download.toFile(partial), {
      ...options,
      progress: () => download.bytes,
    });
    await download.check();
    if (options.preservesMode && source.mode !== undefined)
      await chmod(partial, source.mode & ~process.umask());
    await rename(partial, destination);
    await rm(note, { force: true });
  } catch (error) {
    // Only a lost connection leaves a part that may be resumed.
    if (error instanceof CopyError || isLocal(error)) {
      await Promise.all([rm(partial, { force: true }), rm(note, { force: true })]);
    }
    throw isLocal(error) ? localError(error) : error;
  } finally {
    progress.stop();
  }
}

/** Writes a file to a stream that cannot be rewound: after a lost connection, sends no byte twice. */
export async function downloadToStream(
  source: RemotePath,
  output: Writable,
  options: CopyContext,
): Promise<void> {
  const download = new Download(source, options, await options.startProgress(source.path, source.size));
  await withRetries(() => download.toStream(output), {
    ...options,
    progress: () => download.bytes,
  });
  await download.check();
}

class Download {
  readonly #source: RemotePath;
  readonly #options: CopyContext;
  readonly #progress: CopyProgress;
  readonly #hash = new RunningHash();
  /** The container's SHA-256, and the file's state after its last byte was read. */
  #theirs: Promise<string> | undefined;
  #afterwards = "";
  /** Bytes beyond the file's size at the start. */
  #surplusBytes = 0;
  bytes = 0;

  constructor(source: RemotePath, options: CopyContext, progress: CopyProgress) {
    this.#source = source;
    this.#options = options;
    this.#progress = progress;
  }

  async toFile(partial: string): Promise<void> {
    const size = (await lstat(partial).catch(() => undefined))?.size ?? 0;
    const offset = this.#canResume && size <= this.#source.size ? size : 0;
    this.bytes = offset;
    this.#progress.moveTo(offset);
    // Never follows a link that someone planted at the hidden name.
    if (offset === 0) await rm(partial, { force: true });
    const file = await open(partial, offset === 0 ? "wx+" : RESUME);
    try {
      await this.#hash.moveTo(offset, file);
      const writer = new FileWriter(file, offset, (piece) => this.#account(piece));
      try {
        await this.#read(offset, writer);
      } finally {
        // Keeps the bytes that arrived. If the disk failed, that is the cause of the session's end.
        await writer.finish();
      }
    } finally {
      await file.close();
    }
  }

  async toStream(output: Writable): Promise<void> {
    if (this.bytes > 0 && !this.#canResume)
      throw new CopyError("remote", "the container has no tail to go on with");
    // A write that fails rejects, and its 'error' event comes later: unheard, it would end the process.
    output.on("error", ignored);
    try {
      await this.#read(this.bytes, {
        takePart: (part) => {
          this.#account(part);
          return new Promise((resolve, reject) => {
            output.write(Buffer.from(part), (error) => (error ? reject(error) : resolve()));
          });
        },
      });
    } finally {
      if (output.errored === null) output.off("error", ignored);
    }
  }

  /** Checks that the bytes arrived intact and that the file has not changed. */
  async check(): Promise<void> {
    const { path: remotePath, version, size } = this.#source;
    if (this.#afterwards === "") {
      throw new CopyError("mismatch", `${remotePath}: the container did not say that this was all`);
    }
    const isSame = this.#afterwards === (version || String(size));
    if (!isSame && !this.#hasGrown) throw changedWhileRead(remotePath);
    if (this.bytes !== size || (isSame && this.#surplusBytes > 0)) {
      const arrivedBytes = this.bytes + this.#surplusBytes;
      throw new CopyError("mismatch", `${remotePath}: ${arrivedBytes} bytes arrived of ${size}`);
    }
    const theirs = await withRetries(() => (isSame ? this.#askHash() : this.#askHashOfStart()), {
      ...this.#options,
      progress: () => 0,
    });
    if (theirs !== undefined && theirs !== this.#hash.hex()) {
      if (!isSame) throw changedWhileRead(remotePath);
      throw new CopyError("mismatch", `${remotePath}: the SHA-256 differs on both ends`);
    }
    if (!isSame) warnOfGrowth(this.#options, remotePath, size);
  }

  /** The same file, but longer. */
  get #hasGrown(): boolean {
    const { version, size } = this.#source;
    const [nowSize, , nowInode] = this.#afterwards.split(" ");
    return Number(nowSize) > size && nowInode === version.split(" ")[2];
  }

  get #canResume(): boolean {
    return this.#source.tools.has("tail") && this.#source.version !== "";
  }

  async #read(offset: number, output: PartTaker): Promise<void> {
    const { shell } = this.#options;
    const { path: remotePath, size } = this.#source;
    const isHashedAlong = this.#isHashed && size <= HASHED_ALONG_BYTES;
    // Starts hashing meanwhile; the result is read at the end.
    if (!isHashedAlong) this.#askHash().catch(() => {});
    this.#surplusBytes = 0;
    const args = [remotePath, String(offset + 1), isHashedAlong ? "hash" : "", String(size - offset)];
    const script = offset === 0 ? READ_ALL : READ_FROM;
    const result = await shell.script(script, args, { stdout: this.#upTo(size - offset, output) });
    if (result.exitCode !== 0) throw remoteFailure(result);
    this.#afterwards = /^afterwards *(.*)$/m.exec(result.stderr)?.[1]?.trim() ?? "";
    if (isHashedAlong) this.#theirs = Promise.resolve(hashIn(result.stderr));
  }

  get #isHashed(): boolean {
    return this.#options.verifies && canHash(this.#source.tools);
  }

  /** One hash command at a time; repeats a failed one. */
  async #askHash(): Promise<string | undefined> {
    if (!this.#isHashed) return undefined;
    this.#theirs ??= remoteHash(this.#options.shell, this.#source.path);
    try {
      return await this.#theirs;
    } catch (error) {
      this.#theirs = undefined;
      throw error;
    }
  }

  /** The present hash of the part that the file had at the start. */
  async #askHashOfStart(): Promise<string | undefined> {
    const { path: remotePath, size, tools } = this.#source;
    if (!this.#isHashed) return undefined;
    if (!tools.has("head")) throw changedWhileRead(remotePath);
    return hashIn(await this.#options.shell.mustRun(HASH_START, [remotePath, String(size)]));
  }

  #upTo(bytes: number, output: PartTaker): PartTaker {
    let left = bytes;
    return {
      takePart: (part) => {
        const wanted = part.subarray(0, left);
        left -= wanted.byteLength;
        this.#surplusBytes += part.byteLength - wanted.byteLength;
        return wanted.byteLength === 0 ? undefined : output.takePart(wanted);
      },
    };
  }

  #account(piece: Uint8Array): void {
    this.#hash.update(piece);
    this.bytes += piece.byteLength;
    this.#progress.advance(piece.byteLength);
  }
}

function isLocal(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}

/** Hashes with the container's own program. */
async function remoteHash(shell: RemoteShell, path: string): Promise<string> {
  return hashIn(await shell.mustRun(`${HASH_FUNCTION}h "$1"`, [path]));
}
