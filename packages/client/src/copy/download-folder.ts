import { createHash, type Hash } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { link, mkdir, open, rm } from "node:fs/promises";
import path from "node:path";
import { PassThrough, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract } from "tar-stream";
import { SessionError } from "../sessions/session-error.ts";
import {
  type EntryHeader,
  entryName,
  excludePatterns,
  folderOf,
  localPath,
  moveInto,
  nameIn,
  quotedName,
  safeName,
  shownName,
} from "./archive-names.ts";
import type { CopyContext, CopyProgress } from "./copy-context.ts";
import { CopyError, isInterruption, isOwn, localError, withRetries } from "./copy-error.ts";
import { FileWriter } from "./file-writer.ts";
import { canHash, remoteHashes } from "./hashing.ts";
import { changedNames, changedWhileRead, checkRemoteGrowth } from "./remote-growth.ts";
import type { RemotePath } from "./remote-path.ts";
import { bytesInput, remoteFailure } from "./remote-shell.ts";

/** Bytes that may wait for the disk. */
const BUFFER_BYTES = 4 * 1024 * 1024;
/** Bytes that are unpacked at a time. */
const PIECE_BYTES = 64 * 1024;
/** Headers of an archive entry, which tar-stream buffers whole. Past it the copy fails. */
const MAX_HEADER_BYTES = 1024 * 1024;
/**
 * Entries of an archive, half a KiB of memory each; a folder of more is copied in parts. Past it the
 * copy fails.
 */
const MAX_ARCHIVE_ENTRIES = 2_000_000;
/** Files up to this size are written synchronously: the thread pool costs several times the write. */
const SMALL_BYTES = 64 * 1024;
const PACK = 'cd "$1" && exec tar cf - .';
const PACK_REST = 'cd "$1" && exec tar cf - -X /dev/stdin .';

interface EntryStream extends AsyncIterable<Uint8Array> {
  on(event: "error", listener: () => void): unknown;
}

/** Copies a folder; `destination` appears when complete. Skips links and devices. Throws CopyError, ConnectError, SessionError. */
export async function downloadFolder(
  source: RemotePath,
  destination: string,
  options: CopyContext,
  maxEntries = MAX_ARCHIVE_ENTRIES,
): Promise<void> {
  if (!source.tools.has("tar")) throw new CopyError("remote", "the container has no tar");
  const staging = path.join(path.dirname(destination), `.${path.basename(destination)}.sluice-partial`);
  await rm(staging, { recursive: true, force: true });
  const progress = await options.startProgress(path.basename(destination), 0);
  const unpacking = new Unpacking(staging, options, progress, maxEntries);
  try {
    // Not `recursive`: mkdir would accept a link to a folder as the folder.
    await mkdir(staging);
    await withRetries(() => unpacking.run(source), {
      ...options,
      progress: () => unpacking.bytes,
    });
    if (options.verifies && canHash(source.tools) && source.tools.has("find")) {
      unpacking.compare(await remoteHashes(options.shell, source.path));
    }
    await checkRemoteGrowth(source, unpacking.suspects, options);
    unpacking.setModes();
    await moveInto(staging, destination, "");
  } catch (error) {
    if (error instanceof Error && "syscall" in error) throw localError(error);
    throw error;
  } finally {
    progress.stop();
    await rm(staging, { recursive: true, force: true });
  }
}

class Unpacking {
  readonly #staging: string;
  readonly #options: CopyContext;
  readonly #progress: CopyProgress;
  readonly #maxEntries: number;
  /** The hashes of complete files, by name. */
  readonly #hashes = new Map<string, string>();
  readonly #sizes = new Map<string, number>();
  /** Files that have changed since they were read, by name. */
  readonly suspects = new Map<string, { readonly hash: string; readonly size: number }>();
  readonly #modes = new Map<string, number>();
  readonly #folders = new Set<string>();
  /** Entries of the current attempt. */
  #entries = 0;
  /** Bytes read since the last byte of an entry. */
  #headerBytes = 0;
  #canExclude = true;
  bytes = 0;

  constructor(staging: string, options: CopyContext, progress: CopyProgress, maxEntries: number) {
    this.#maxEntries = maxEntries;
    this.#staging = staging;
    this.#options = options;
    this.#progress = progress;
  }

  async run(source: RemotePath): Promise<void> {
    const archive = extract({ filenameEncoding: "latin1" });
    this.#entries = 0;
    this.#headerBytes = 0;
    let problem: Error | undefined;
    // The archive may end with this header, before the entry is processed.
    let last = Promise.resolve();
    archive.on("entry", (header: EntryHeader, stream: EntryStream, next: () => void) => {
      last = this.#entry(header, stream);
      last.then(next, (error: Error) => {
        problem ??= error;
        archive.destroy(error);
      });
    });
    // tar-stream's objects behave like Node's streams but are not instances of them.
    const bytes = new PassThrough({ highWaterMark: BUFFER_BYTES });
    const unpacked = pipeline(bytes, (chunks) => this.#bounded(chunks), archive as unknown as Writable);
    unpacked.catch(() => {});
    // Stays after the pipeline has removed its own listener.
    archive.on("error", (error: Error) => {
      problem ??= error;
    });
    try {
      const { shell } = this.#options;
      const streams = { stdout: bytes };
      const done = this.#canExclude ? excludePatterns(this.#hashes.keys()) : "";
      const stdin = bytesInput(Buffer.from(done, "latin1"));
      const result = await (done === ""
        ? shell.script(PACK, [source.path], streams)
        : shell.script(PACK_REST, [source.path], { ...streams, stdin }));
      if (result.exitCode !== 0 && done !== "" && this.#entries === 0) {
        // Busybox may lack -X; then everything is sent again.
        this.#canExclude = false;
        throw new SessionError("connection-lost", "the container's tar cannot leave files out");
      }
      const changed = changedNames(result.stderr);
      if (result.exitCode !== 0 && (result.exitCode !== 1 || changed === undefined))
        throw remoteFailure(result);
      bytes.end();
      await unpacked;
      await last;
      for (const name of changed ?? []) this.#suspect(safeName(name));
    } catch (error) {
      // A late entry would count for the next attempt, or create the staging folder again.
      bytes.destroy();
      archive.destroy();
      await Promise.allSettled([unpacked, last]);
      // A fault of the archive itself: a header that is too long, invalid or truncated.
      if (problem !== undefined && !isOwn(problem)) {
        throw new CopyError("remote", `the container's archive cannot be read: ${problem.message}`, {
          cause: problem,
        });
      }
      // The unpacking error is the cause; the session ended because of it.
      if (!isInterruption(error) && !(error instanceof CopyError)) await unpacked;
      throw error;
    }
  }

  /** Compares files with the container's hashes, if both ends can represent the name. */
  compare(theirs: ReadonlyMap<string, string>): void {
    for (const [name, hash] of this.#hashes) {
      const other = theirs.get(name);
      if (other === hash) this.suspects.delete(name);
      else if (other !== undefined) this.#suspect(name);
    }
    for (const name of theirs.keys()) {
      if (!this.#hashes.has(name))
        throw new CopyError("changed", `${shownName(name)}: appeared while the folder was read`);
    }
  }

  #suspect(name: string): void {
    const [hash, size] = [this.#hashes.get(name), this.#sizes.get(name)];
    // Not a file with content of its own: a folder, or another name of a file.
    if (hash === undefined || size === undefined) throw changedWhileRead(shownName(name));
    this.suspects.set(name, { hash, size });
  }

  /** Comes last, because a folder may be read-only. */
  setModes(): void {
    if (!this.#options.preservesMode) return;
    for (const [name, mode] of [...this.#modes].reverse())
      chmodSync(localPath(this.#staging, name), mode & 0o777 & ~process.umask());
  }

  async #entry(header: EntryHeader, stream: EntryStream): Promise<void> {
    this.#entries += 1;
    this.#headerBytes = 0;
    // The archive reports the error itself.
    stream.on("error", () => {});
    if (Math.max(this.#entries, this.#hashes.size) > this.#maxEntries)
      throw new Error(`it has more than ${this.#maxEntries} entries`);
    const name = entryName(header);
    const target = localPath(this.#staging, name);
    switch (header.type) {
      case "directory":
        await this.#makeFolder(name);
        if (header.mode !== undefined && name !== "") this.#modes.set(name, header.mode);
        // No content follows, whatever size the header announces; tar-stream would wait for it.
        return;
      case "file":
      case "contiguous-file":
        await this.#makeFolder(folderOf(name));
        await this.#file(name, target, stream, header);
        break;
      case "link":
        await this.#makeFolder(folderOf(name));
        await rm(target, { force: true });
        await this.#link(safeName(nameIn(header.linkname ?? "", header.pax?.linkpath)), name);
        break;
      default:
        this.#options.warn(`skipping ${header.type}: ${quotedName(name)}`);
        await this.#skip(stream);
        return;
    }
    await this.#skip(stream);
    if (header.mode !== undefined && name !== "") this.#modes.set(name, header.mode);
  }

  async *#bounded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      // Bytes that waited for the disk arrive as one chunk. Entries count once a piece of it is
      // unpacked.
      for (let start = 0; start < chunk.byteLength; start += PIECE_BYTES) {
        const piece = chunk.subarray(start, start + PIECE_BYTES);
        this.#headerBytes += piece.byteLength;
        if (this.#headerBytes > MAX_HEADER_BYTES) throw new Error("a header is longer than 1 MiB");
        yield piece;
      }
    }
  }

  async *#counted(stream: EntryStream): AsyncGenerator<Uint8Array> {
    for await (const part of stream) {
      this.#headerBytes = 0;
      yield part;
    }
  }

  async #skip(stream: EntryStream): Promise<void> {
    for await (const _ of this.#counted(stream));
  }

  async #makeFolder(name: string): Promise<void> {
    if (this.#folders.has(name)) return;
    await mkdir(localPath(this.#staging, name), { recursive: true });
    this.#folders.add(name);
  }

  async #link(first: string, name: string): Promise<void> {
    await link(localPath(this.#staging, first), localPath(this.#staging, name));
    this.#hashes.set(name, this.#hashes.get(first) ?? "");
    this.#sizes.set(name, this.#sizes.get(first) ?? 0);
  }

  async #file(name: string, target: Buffer, stream: EntryStream, header: EntryHeader): Promise<void> {
    const hash = createHash("sha256");
    const size = header.size ?? 0;
    if (size <= SMALL_BYTES) {
      const parts: Uint8Array[] = [];
      for await (const part of this.#counted(stream)) parts.push(part);
      const bytes = Buffer.concat(parts);
      hash.update(bytes);
      this.#progress.advance(bytes.byteLength);
      writeFileSync(target, bytes);
    } else await this.#largeFile(target, stream, hash);
    if (!this.#hashes.has(name)) this.bytes += size;
    this.#hashes.set(name, hash.digest("hex"));
    this.#sizes.set(name, size);
  }

  async #largeFile(target: Buffer, stream: EntryStream, hash: Hash): Promise<void> {
    const file = await open(target, "w");
    try {
      const writer = new FileWriter(file, 0, (piece) => hash.update(piece));
      for await (const part of this.#counted(stream)) {
        this.#progress.advance(part.byteLength);
        const room = writer.takePart(part);
        if (room !== undefined) await room;
      }
      await writer.finish();
    } finally {
      await file.close();
    }
  }
}
