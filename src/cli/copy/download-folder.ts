import { createHash, type Hash } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { link, lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { PassThrough, type Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, type Headers as Header } from "tar-stream";
import { SessionError } from "../../client/session-error.ts";
import { maskControls } from "../../observability/mask-controls.ts";
import { refuseLinks, safeName } from "./archive-names.ts";
import { CopyError } from "./copy-error.ts";
import type { CopyOptions } from "./copy-options.ts";
import { FileWriter } from "./file-writer.ts";
import { canHash, remoteHashes } from "./hashing.ts";
import { type Progress, startProgress } from "./progress.ts";
import type { RemotePath } from "./remote-path.ts";
import { remoteFailure, textInput } from "./remote-shell.ts";
import { isInterruption, withRetries } from "./retry.ts";

/** What may wait for the disk. */
const BUFFER_BYTES = 4 * 1024 * 1024;
/** What is unpacked at once. */
const PIECE_BYTES = 64 * 1024;
/** PAX headers and long names of a single entry: tar-stream keeps them whole, whatever length they state. */
const MAX_HEADER_BYTES = 1024 * 1024;
/** A file of up to so much is written at once: to go through threads for it, three times, costs several times the writing. */
const SMALL_BYTES = 64 * 1024;
const PACK = 'cd "$1" && exec tar cf - .';
const PACK_REST = 'cd "$1" && exec tar cf - -X /dev/stdin .';

interface EntryStream extends AsyncIterable<Uint8Array> {
  on(event: "error", listener: () => void): unknown;
}

/** Copies a folder; `destination` appears when it is complete. Links and devices are skipped. Throws CopyError, ConnectError, SessionError. */
export async function downloadFolder(
  source: RemotePath,
  destination: string,
  options: CopyOptions,
): Promise<void> {
  if (!source.tools.has("tar")) throw new CopyError("remote", "the container has no tar");
  const staging = path.join(path.dirname(destination), `.${path.basename(destination)}.sluice-partial`);
  await rm(staging, { recursive: true, force: true });
  const progress = await startProgress(path.basename(destination), 0, options.isQuiet);
  const unpacking = new Unpacking(staging, options, progress);
  try {
    // Not `recursive`: that takes a link to a folder for the folder.
    await mkdir(staging);
    await withRetries(() => unpacking.run(source), {
      ...options,
      progress: () => unpacking.bytes,
      note: options.verbosity.note,
    });
    if (options.verifies && canHash(source.tools) && source.tools.has("find")) {
      unpacking.compare(await remoteHashes(options.shell, source.path));
    }
    unpacking.setModes();
    await moveInto(staging, destination, "");
  } catch (error) {
    if (error instanceof Error && "syscall" in error)
      throw new CopyError("local", error.message, { cause: error });
    throw error;
  } finally {
    progress.stop();
    await rm(staging, { recursive: true, force: true });
  }
}

class Unpacking {
  readonly #staging: string;
  readonly #options: CopyOptions;
  readonly #progress: Progress;
  /** By name, of the files that are whole. */
  readonly #hashes = new Map<string, string>();
  readonly #modes = new Map<string, number>();
  readonly #folders = new Set<string>();
  /** Of the running attempt. */
  #entries = 0;
  /** What was read since the last byte of an entry. */
  #headerBytes = 0;
  #canExclude = true;
  bytes = 0;

  constructor(staging: string, options: CopyOptions, progress: Progress) {
    this.#staging = staging;
    this.#options = options;
    this.#progress = progress;
  }

  async run(source: RemotePath): Promise<void> {
    const archive = extract();
    this.#entries = 0;
    this.#headerBytes = 0;
    archive.on("entry", (header: Header, stream: EntryStream, next: () => void) => {
      this.#entry(header, stream).then(
        () => next(),
        (error: Error) => archive.destroy(error),
      );
    });
    // What tar-stream makes is written and read as Node's streams are, without being of their classes.
    const bytes = new PassThrough({ highWaterMark: BUFFER_BYTES });
    const unpacked = pipeline(bytes, (chunks) => this.#bounded(chunks), archive as unknown as Writable);
    unpacked.catch(() => {});
    let problem: Error | undefined;
    // Also where the pipeline has let go of it already.
    archive.on("error", (error: Error) => {
      problem ??= error;
    });
    try {
      const { shell, signal } = this.#options;
      const done = this.#canExclude
        ? [...this.#hashes.keys()].map((name) => `./${name.replace(/[\\*?[\]]/g, "\\$&")}\n`).join("")
        : "";
      const result = await (done === ""
        ? shell.script(PACK, [source.path], { stdout: bytes, signal })
        : shell.script(PACK_REST, [source.path], { stdin: textInput(done), stdout: bytes, signal }));
      if (result.exitCode !== 0 && done !== "" && this.#entries === 0) {
        // Busybox may have been built without -X: everything is sent again then.
        this.#canExclude = false;
        throw new SessionError("connection-lost", "the container's tar cannot leave files out");
      }
      if (/file changed as we read it/.test(result.stderr)) {
        throw new CopyError("changed", `${source.path}: ${result.stderr.trim().slice(0, 300)}`);
      }
      if (result.exitCode !== 0) throw remoteFailure(result);
      bytes.end();
      await unpacked;
    } catch (error) {
      // An entry that came later would count as one of the next attempt.
      bytes.destroy();
      archive.destroy();
      await unpacked.catch(() => {});
      // The archive itself: a header that is too long, wrong or cut off.
      if (problem !== undefined && !isOwn(problem)) {
        throw new CopyError("remote", `the container's archive cannot be read: ${problem.message}`, {
          cause: problem,
        });
      }
      // What stopped the unpacking is the cause; the session only ended with it.
      if (!isInterruption(error) && !(error instanceof CopyError)) await unpacked;
      throw error;
    }
  }

  /** What arrived is what is there: of the files that both ends could name. */
  compare(theirs: ReadonlyMap<string, string>): void {
    for (const [name, hash] of this.#hashes) {
      const other = theirs.get(name);
      if (other !== undefined && other !== hash)
        throw new CopyError("changed", `${name}: file changed as we read it`);
    }
    for (const name of theirs.keys()) {
      if (!this.#hashes.has(name))
        throw new CopyError("changed", `${name}: appeared while the folder was read`);
    }
  }

  /** Last, for a folder may be read-only. */
  setModes(): void {
    if (!this.#options.preservesMode) return;
    for (const [name, mode] of [...this.#modes].reverse())
      chmodSync(path.join(this.#staging, name), mode & 0o777 & ~process.umask());
  }

  async #entry(header: Header, stream: EntryStream): Promise<void> {
    this.#entries += 1;
    this.#headerBytes = 0;
    // The archive's own error says it.
    stream.on("error", () => {});
    const { size = 0 } = header;
    if (!Number.isSafeInteger(size) || size < 0) throw new Error(`an entry states a size of ${size}`);
    const name = safeName(header.name);
    const target = path.join(this.#staging, name);
    switch (header.type) {
      case "directory":
        await this.#makeFolder(target);
        if (header.mode !== undefined && name !== "") this.#modes.set(name, header.mode);
        // Whatever size it states, nothing follows; tar-stream would wait for it.
        return;
      case "file":
      case "contiguous-file":
        await this.#makeFolder(path.dirname(target));
        await this.#file(name, target, stream, header);
        break;
      case "link":
        await this.#makeFolder(path.dirname(target));
        await rm(target, { force: true });
        await link(path.join(this.#staging, safeName(header.linkname ?? "")), target);
        this.#hashes.set(name, this.#hashes.get(safeName(header.linkname ?? "")) ?? "");
        break;
      default:
        process.stderr.write(maskControls(`warning: skipping ${header.type}: ${JSON.stringify(name)}\n`));
        await this.#skip(stream);
        return;
    }
    await this.#skip(stream);
    if (header.mode !== undefined && name !== "") this.#modes.set(name, header.mode);
  }

  async *#bounded(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of chunks) {
      // What waited for the disk comes as one chunk: the bytes of entries count as soon as a piece of it is unpacked.
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

  async #makeFolder(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return;
    await mkdir(folder, { recursive: true });
    this.#folders.add(folder);
  }

  async #file(name: string, target: string, stream: EntryStream, header: Header): Promise<void> {
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
  }

  async #largeFile(target: string, stream: EntryStream, hash: Hash): Promise<void> {
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

/** Ours, or the file system's. */
function isOwn(error: Error): boolean {
  return error instanceof CopyError || "syscall" in error || "code" in error;
}

/** Renames what is in `staging` to below `destination`, folders that are there already by their contents. */
async function moveInto(staging: string, destination: string, name: string): Promise<void> {
  const target = path.join(destination, name);
  if (name !== "") await refuseLinks(destination, name);
  const known = await lstat(target).catch(() => undefined);
  if (known === undefined) {
    await rename(path.join(staging, name), target);
    return;
  }
  const arrived = await lstat(path.join(staging, name));
  if (!arrived.isDirectory() || (name === "" && known.isSymbolicLink())) {
    if (known.isDirectory()) throw new CopyError("usage", `${target} is a folder`);
    await rename(path.join(staging, name), target);
    return;
  }
  if (!known.isDirectory()) throw new CopyError("unsafe", `${target} is not a folder`);
  for (const child of await readdir(path.join(staging, name)))
    await moveInto(staging, destination, path.posix.join(name, child));
}
