import { createHash } from "node:crypto";
import { closeSync, constants, createReadStream, fstatSync, openSync, readFileSync } from "node:fs";
import { lstat } from "node:fs/promises";
import path from "node:path";
import { type Pack, pack } from "tar-stream";
import { poisonFreed } from "../../net/freed-memory.ts";
import { CopyError } from "./copy-error.ts";
import type { CopyOptions } from "./copy-options.ts";
import { finishBrokenOff } from "./finish-broken-off.ts";
import { canHash, remoteHashes } from "./hashing.ts";
import { type LocalEntry, listFolder } from "./local-folder.ts";
import { type Progress, startProgress } from "./progress.ts";
import { partialName, type RemotePath } from "./remote-path.ts";
import { remoteFailure } from "./remote-shell.ts";
import { withRetries } from "./retry.ts";

/** A file of up to this much is read at once. */
const AT_ONCE_BYTES = 256 * 1024;
const PIECE_BYTES = 240 * 1024;
const CLEAR = 'rm -rf "$1" "$1.pid" && mkdir "$1"';
/** tar leaves its number, as the writer of a single file does. */
const UNPACK = 'echo $$ > "$1.pid" && cd "$1" && exec tar xmf -';
/** Stops an earlier tar, by its process ID and only while it works in this folder, and lists what it left. */
const SIZES = `i=$(cat "$1.pid" 2>/dev/null); n=0
while [ -n "$i" ] && [ "$(readlink "/proc/$i/cwd" 2>/dev/null)" = "$1" ] && [ $n -lt 20 ]; do kill -9 "$i" 2>/dev/null; [ $n -lt 3 ] || sleep 1; n=$((n+1)); done
cd "$1" || exit 1
find . -type f -exec stat -c '%s %n' {} + 2>/dev/null || find . -type f -exec wc -c {} \\;`;
const FINISH =
  'rm -f "$1.pid"; if [ -d "$2" ]; then cp -R "$1/." "$2/" && rm -rf "$1"; else mv "$1" "$2"; fi';
const REMOVE = 'rm -rf "$1" "$1.pid"';

/**
 * Copies a folder; `destination` appears when it is complete. Files that arrived before a connection was lost are not sent again.
 * Throws CopyError, ConnectError, SessionError.
 */
export async function uploadFolder(
  source: string,
  destination: string,
  remote: RemotePath,
  options: CopyOptions,
): Promise<void> {
  if (!remote.tools.has("tar")) throw new CopyError("remote", "the container has no tar");
  const entries = await listFolder(source, "").catch((error: Error) => {
    throw new CopyError("local", error.message, { cause: error });
  });
  const { shell, verbosity } = options;
  const staging = partialName(destination);
  const totalBytes = entries.reduce((sum, { size }) => sum + size, 0);
  const progress = await startProgress(path.basename(source), totalBytes, options.isQuiet);
  const packing = new Packing(source, entries, staging, options, progress);
  try {
    await withRetries(() => shell.mustRun(CLEAR, [staging]), {
      ...options,
      progress: () => 0,
      note: verbosity.note,
    });
    await withRetries(() => packing.run(remote), {
      ...options,
      progress: () => packing.safeBytes,
      note: verbosity.note,
    });
    if (options.verifies && canHash(remote.tools) && remote.tools.has("find")) {
      packing.compare(await remoteHashes(shell, staging));
    }
    await shell.mustRun(FINISH, [staging, destination]);
  } catch (error) {
    await shell.script(REMOVE, [staging]).catch(() => {});
    throw error;
  } finally {
    progress.stop();
  }
}

class Packing {
  readonly #source: string;
  readonly #entries: readonly LocalEntry[];
  readonly #staging: string;
  readonly #options: CopyOptions;
  readonly #progress: Progress;
  readonly #hashes = new Map<string, string>();
  #attempts = 0;
  safeBytes = 0;

  constructor(
    source: string,
    entries: readonly LocalEntry[],
    staging: string,
    options: CopyOptions,
    progress: Progress,
  ) {
    this.#source = source;
    this.#entries = entries;
    this.#staging = staging;
    this.#options = options;
    this.#progress = progress;
  }

  async run(remote: RemotePath): Promise<void> {
    const { shell, signal } = this.#options;
    this.#attempts += 1;
    const arrived =
      this.#attempts > 1 && remote.tools.has("find") ? await this.#arrived(remote) : new Set<string>();
    const archive = pack();
    const bytes = inLargePieces(archive as unknown as AsyncIterable<Buffer>);
    let problem: Error | undefined;
    this.#pack(archive, arrived).then(
      () => archive.finalize(),
      (error: Error) => {
        // The caller that aborted the archive has the cause.
        if (!(error instanceof GivenUp)) problem = error;
        archive.destroy(error);
      },
    );
    try {
      const result = await shell.script(UNPACK, [this.#staging], { stdin: bytes, signal });
      if (result.exitCode !== 0) throw remoteFailure(result);
    } catch (error) {
      throw problem ?? error;
    } finally {
      archive.destroy();
    }
  }

  compare(theirs: ReadonlyMap<string, string>): void {
    for (const [name, hash] of this.#hashes) {
      const other = theirs.get(name);
      // A name that the program writes in another way is not in its list.
      if (other === undefined ? !/[\\\n]/.test(name) : other !== hash) {
        throw new CopyError("mismatch", `${name}: the SHA-256 differs on both ends`);
      }
    }
  }

  /** The files that are whole. What tar was writing when it ended is shorter: its rest is sent by itself. */
  async #arrived(remote: RemotePath): Promise<Set<string>> {
    const sizes = new Map<string, number>();
    for (const line of (await this.#options.shell.mustRun(SIZES, [this.#staging])).split("\n")) {
      const [, size, name] = /^\s*(\d+) \.\/(.+)$/.exec(line) ?? [];
      if (size !== undefined && name !== undefined) sizes.set(name, Number(size));
    }
    const whole = this.#entries.filter(
      ({ type, name, size }) => type === "file" && sizes.get(name) === size && this.#hashes.has(name),
    );
    this.#isSafe(whole);
    if (this.#options.verifies && canHash(remote.tools)) {
      const folders = { source: this.#source, staging: this.#staging };
      for (const [entry, hash] of await finishBrokenOff(
        this.#entries,
        sizes,
        folders,
        remote,
        this.#options,
      )) {
        this.#hashes.set(entry.name, hash);
        whole.push(entry);
      }
      this.#isSafe(whole);
    }
    return new Set(whole.map(({ name }) => name));
  }

  #isSafe(whole: readonly LocalEntry[]): void {
    this.safeBytes = whole.reduce((sum, { size }) => sum + size, 0);
    this.#progress.moveTo(this.safeBytes);
  }

  async #pack(archive: Pack, arrived: ReadonlySet<string>): Promise<void> {
    const givenUp = new Promise<never>((_resolve, reject) => {
      archive.once("close", () => reject(new GivenUp()));
    });
    givenUp.catch(() => {});
    for (const { name, type, mode, size, mtimeMs, linkname } of this.#entries) {
      const header = { name, mode, mtime: new Date(Math.trunc(mtimeMs)) };
      if (type === "file") {
        if (!arrived.has(name)) await this.#packFile(archive, { ...header, size }, givenUp);
        continue;
      }
      await new Promise<void>((resolve, reject) => {
        const done = (error?: Error | null): void => (error ? reject(error) : resolve());
        archive.entry({ ...header, type, ...(linkname !== undefined && { linkname }) }, done);
      });
    }
  }

  /** Read without a thread of the pool for each step: that costs several times what reading a small file does. */
  async #packSmall(
    archive: Pack,
    header: { name: string; size: number; mode: number; mtime: Date },
    changed: CopyError,
  ): Promise<void> {
    const file = openSync(path.join(this.#source, header.name), constants.O_RDONLY | constants.O_NONBLOCK);
    let content: Buffer;
    try {
      if (fstatSync(file).size !== header.size) throw changed;
      content = readFileSync(file);
      const { mtimeMs } = fstatSync(file);
      if (content.byteLength !== header.size || Math.trunc(mtimeMs) !== header.mtime.getTime()) throw changed;
    } finally {
      closeSync(file);
    }
    this.#progress.advance(content.byteLength);
    await new Promise<void>((resolve, reject) => {
      archive.entry(header, content, (error) => (error ? reject(error) : resolve()));
    });
    this.#hashes.set(header.name, createHash("sha256").update(content).digest("hex"));
  }

  async #packFile(
    archive: Pack,
    header: { name: string; size: number; mode: number; mtime: Date },
    givenUp: Promise<never>,
  ): Promise<void> {
    const file = path.join(this.#source, header.name);
    const changed = new CopyError("changed", `${file}: file changed as we read it`);
    if (header.size <= AT_ONCE_BYTES) {
      await Promise.race([this.#packSmall(archive, header, changed), givenUp]);
      return;
    }
    const hash = createHash("sha256");
    let bytes = 0;
    const entry = archive.entry(header);
    for await (const chunk of createReadStream(file, { highWaterMark: 256 * 1024 })) {
      bytes += (chunk as Buffer).byteLength;
      if (bytes > header.size) throw changed;
      hash.update(chunk as Buffer);
      this.#progress.advance((chunk as Buffer).byteLength);
      if (entry.write(chunk)) continue;
      await Promise.race([new Promise<void>((resolve) => entry.once("drain", () => resolve())), givenUp]);
    }
    if (bytes !== header.size || Math.trunc((await lstat(file)).mtimeMs) !== header.mtime.getTime())
      throw changed;
    const taken = new Promise<void>((resolve) => entry.once("finish", () => resolve()));
    entry.end(undefined);
    await Promise.race([taken, givenUp]);
    this.#hashes.set(header.name, hash.digest("hex"));
  }
}

/** The archive's reader has gone. */
class GivenUp extends Error {}

/** tar's blocks of 512 bytes, sent one by one, would be most of the work. A piece is free again when the next is asked for. */
async function* inLargePieces(archive: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  const piece = Buffer.allocUnsafeSlow(PIECE_BYTES);
  let bytes = 0;
  for await (const chunk of archive) {
    for (let at = 0; at < chunk.byteLength; ) {
      const end = Math.min(chunk.byteLength, at + PIECE_BYTES - bytes);
      piece.set(chunk.subarray(at, end), bytes);
      bytes += end - at;
      at = end;
      if (bytes < PIECE_BYTES) continue;
      yield piece;
      poisonFreed(piece);
      bytes = 0;
    }
  }
  if (bytes > 0) yield piece.subarray(0, bytes);
}
