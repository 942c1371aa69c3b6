import { createWriteStream } from "node:fs";
import { chmod, readFile, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import path from "node:path";
import { Transform, type TransformCallback, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { CopyError } from "./copy-error.ts";
import type { CopyOptions } from "./copy-options.ts";
import { RunningHash, remoteHash } from "./hashing.ts";
import { type Progress, startProgress } from "./progress.ts";
import { inspect, type RemotePath } from "./remote-path.ts";
import { remoteFailure } from "./remote-shell.ts";
import { withRetries } from "./retry.ts";

/** What may wait for the disk: messages come in pieces of 32 KiB, and a write for each of them is most of the work. */
const BUFFER_BYTES = 4 * 1024 * 1024;
const READ_ALL = 'exec cat "$1"';
const READ_FROM = 'exec tail -c +"$2" "$1"';

/**
 * Copies a file to `destination`, which appears whole or not at all: it grows under another name beside it. A copy that broke
 * off is gone on with, also by a later call, as long as the source is the same.
 *
 * Throws CopyError, ConnectError, SessionError.
 */
export async function downloadFile(
  source: RemotePath,
  destination: string,
  options: CopyOptions,
): Promise<void> {
  const partial = path.join(path.dirname(destination), `.${path.basename(destination)}.sluice-partial`);
  const note = `${partial}.of`;
  const progress = startProgress(path.basename(destination), source.size, options.isQuiet);
  const download = new Download(source, options, progress);
  try {
    const isSame = source.version !== "" && (await readFile(note, "utf8").catch(() => "")) === source.version;
    if (!isSame) await rm(partial, { force: true });
    await writeFile(note, source.version);
    await withRetries(() => download.toFile(partial), {
      ...options,
      progress: () => download.bytes,
      note: options.verbosity.note,
    });
    await download.check();
    if (options.preservesMode && source.mode !== undefined) await chmod(partial, source.mode);
    await rename(partial, destination);
    await rm(note, { force: true });
  } catch (error) {
    // Only what a lost connection left may be gone on with.
    if (error instanceof CopyError || isLocal(error)) {
      await Promise.all([rm(partial, { force: true }), rm(note, { force: true })]);
    }
    throw isLocal(error) ? new CopyError("local", (error as Error).message, { cause: error }) : error;
  } finally {
    progress.stop();
  }
}

/** Writes a file to a stream that cannot be taken back; what has gone there is not sent again after a lost connection. */
export async function downloadToStream(
  source: RemotePath,
  output: Writable,
  options: CopyOptions,
): Promise<void> {
  const download = new Download(source, options, startProgress(source.path, source.size, options.isQuiet));
  await withRetries(() => download.toStream(output), {
    ...options,
    progress: () => download.bytes,
    note: options.verbosity.note,
  });
  await download.check();
}

class Download {
  readonly #source: RemotePath;
  readonly #options: CopyOptions;
  readonly #progress: Progress;
  readonly #hash = new RunningHash();
  #theirs: Promise<string> | undefined;
  bytes = 0;

  constructor(source: RemotePath, options: CopyOptions, progress: Progress) {
    this.#source = source;
    this.#options = options;
    this.#progress = progress;
  }

  async toFile(partial: string): Promise<void> {
    const size = (await stat(partial).catch(() => undefined))?.size ?? 0;
    const offset = this.#canResume && size <= this.#source.size ? size : 0;
    if (size !== offset) await truncate(partial, offset).catch(() => {});
    await this.#hash.moveTo(offset, partial);
    this.bytes = offset;
    this.#progress.moveTo(offset);
    const file = createWriteStream(partial, { flags: offset === 0 ? "w" : "a", highWaterMark: BUFFER_BYTES });
    const meter = this.#meter();
    const written = pipeline(meter, file);
    // Its failure is the session's, which tells it.
    written.catch(() => {});
    try {
      await this.#read(offset, meter);
      meter.end();
      await written;
    } catch (error) {
      // What has arrived is kept: the file is closed with all of it.
      meter.end();
      await written;
      throw error;
    }
  }

  async toStream(output: Writable): Promise<void> {
    if (this.bytes > 0 && !this.#canResume)
      throw new CopyError("remote", "the container has no tail to go on with");
    await this.#read(
      this.bytes,
      new Writable({
        write: (chunk: Buffer, _encoding, done) => {
          this.#account(chunk);
          output.write(chunk, done);
        },
      }),
    );
  }

  /** What arrived is what was there, and what was there has not changed. */
  async check(): Promise<void> {
    const { path: remotePath, version, size } = this.#source;
    const now = await inspect(this.#options.shell, remotePath);
    if (now.version !== version || now.size !== size || now.kind !== "file") {
      throw new CopyError("changed", `${remotePath}: file changed as we read it`);
    }
    if (this.bytes !== size) {
      throw new CopyError("mismatch", `${remotePath}: ${this.bytes} bytes arrived of ${size}`);
    }
    const theirs = await this.#theirs;
    if (theirs !== undefined && theirs !== this.#hash.hex()) {
      throw new CopyError("mismatch", `${remotePath}: the SHA-256 differs on both ends`);
    }
  }

  get #canResume(): boolean {
    return this.#source.tools.has("tail") && this.#source.version !== "";
  }

  async #read(offset: number, output: Writable): Promise<void> {
    const { shell, signal, verifies } = this.#options;
    const { path: remotePath, tools } = this.#source;
    if (this.#theirs === undefined && verifies && tools.has("sha256sum")) {
      this.#theirs = remoteHash(shell, remotePath).catch(() => remoteHash(shell, remotePath));
      this.#theirs.catch(() => {});
    }
    const streams = { stdout: output, signal };
    const result =
      offset === 0
        ? await shell.script(READ_ALL, [remotePath], streams)
        : await shell.script(READ_FROM, [remotePath, String(offset + 1)], streams);
    if (result.exitCode !== 0) throw remoteFailure(result);
  }

  #meter(): Transform {
    return new Transform({
      highWaterMark: BUFFER_BYTES,
      transform: (chunk: Buffer, _encoding, done: TransformCallback) => {
        this.#account(chunk);
        done(null, chunk);
      },
    });
  }

  #account(chunk: Buffer): void {
    this.#hash.update(chunk);
    this.bytes += chunk.byteLength;
    this.#progress.advance(chunk.byteLength);
  }
}

function isLocal(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}
