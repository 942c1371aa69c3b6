import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";
import path from "node:path";
import { poisonFreed } from "../net/freed-memory.ts";
import {
  ARCHIVE_END,
  archiveHeader,
  archivePadding,
  finishBrokenOff,
  type LocalEntry,
  listFolder,
} from "./archive-header.ts";
import { localPath, shownName } from "./archive-names.ts";
import type { CopyContext, CopyProgress } from "./copy-context.ts";
import { CopyError, localError, withRetries } from "./copy-error.ts";
import { canHash, readPieces, remoteHashes } from "./hashing.ts";
import { hasOnlyGrown, warnOfGrowth } from "./remote-growth.ts";
import { partialName, type RemotePath } from "./remote-path.ts";
import { remoteFailure } from "./remote-shell.ts";

/** Files up to this size are read in one piece. */
const AT_ONCE_BYTES = 256 * 1024;
const PIECE_BYTES = 240 * 1024;
const CLEAR = 'rm -rf "$1" "$1.pid" && mkdir "$1"';
/** tar leaves its process ID, like the writer of a single file. */
const UNPACK = 'rm -f "$1.pid" && set -C && echo $$ > "$1.pid" && [ ! -L "$1" ] && cd "$1" && exec tar xmf -';
/**
 * Stops an earlier tar, by its process ID and only if it works in this folder, and lists the files
 * it left.
 */
const SIZES = `i=$(cat "$1.pid" 2>/dev/null); n=0
while [ -n "$i" ] && [ "$(readlink "/proc/$i/cwd" 2>/dev/null)" = "$1" ] && [ $n -lt 20 ]; do kill -9 "$i" 2>/dev/null; [ $n -lt 3 ] || sleep 1; n=$((n+1)); done
cd "$1" || exit 1
find . -type f -exec stat -c '%s %n' {} + 2>/dev/null || find . -type f -exec wc -c {} \\;`;
const FINISH =
  'rm -f "$1.pid"; if [ -d "$2" ]; then cp -R "$1/." "$2/" && rm -rf "$1"; else mv "$1" "$2"; fi';
/** A folder from the archive may be read-only. */
const REMOVE = `rm -rf "$1" "$1.pid" 2>/dev/null || { find "$1" -type d -exec chmod u+rwx {} \\;; rm -rf "$1" "$1.pid"; }`;

/**
 * Copies a folder; `destination` appears when it is complete. Does not resend files that arrived
 * before a connection was lost. Throws CopyError, ConnectError, SessionError.
 */
export async function uploadFolder(
  source: string,
  destination: string,
  remote: RemotePath,
  options: CopyContext,
): Promise<void> {
  if (!remote.tools.has("tar")) throw new CopyError("remote", "the container has no tar");
  const entries = await listFolder(source, "", options).catch((error: Error) => {
    throw localError(error);
  });
  const { shell } = options;
  const staging = partialName(destination);
  const totalBytes = entries.reduce((sum, { size }) => sum + size, 0);
  const progress = await options.startProgress(path.basename(source), totalBytes);
  const packing = new Packing(source, entries, staging, options, progress);
  try {
    await withRetries(() => shell.mustRun(CLEAR, [staging]), {
      ...options,
      progress: () => 0,
    });
    await withRetries(() => packing.run(remote), {
      ...options,
      progress: () => packing.safeBytes,
    });
    if (options.verifies && canHash(remote.tools) && remote.tools.has("find")) {
      packing.compare(await remoteHashes(shell, staging));
    }
    await shell.mustRun(FINISH, [staging, destination]);
  } catch (error) {
    await shell.cleanUp(REMOVE, [staging]);
    throw error;
  } finally {
    progress.stop();
  }
}

class Packing {
  readonly #source: string;
  readonly #entries: readonly LocalEntry[];
  readonly #staging: string;
  readonly #options: CopyContext;
  readonly #progress: CopyProgress;
  readonly #hashes = new Map<string, string>();
  #attempts = 0;
  /** The error that ended the archive on this side. */
  #problem: unknown;
  safeBytes = 0;

  constructor(
    source: string,
    entries: readonly LocalEntry[],
    staging: string,
    options: CopyContext,
    progress: CopyProgress,
  ) {
    this.#source = source;
    this.#entries = entries;
    this.#staging = staging;
    this.#options = options;
    this.#progress = progress;
  }

  async run(remote: RemotePath): Promise<void> {
    const { shell } = this.#options;
    this.#attempts += 1;
    const arrived =
      this.#attempts > 1 && remote.tools.has("find") ? await this.#arrived(remote) : new Set<string>();
    this.#problem = undefined;
    const stdin = inLargePieces(this.#archive(arrived));
    try {
      const result = await shell.script(UNPACK, [this.#staging], { stdin });
      if (result.exitCode !== 0) throw remoteFailure(result);
    } catch (error) {
      throw this.#problem ?? error;
    }
  }

  compare(theirs: ReadonlyMap<string, string>): void {
    for (const [name, hash] of this.#hashes) {
      const other = theirs.get(name);
      // Names that the program would escape are missing from its list.
      if (other === undefined ? !/[\\\n]/.test(name) : other !== hash) {
        throw new CopyError("mismatch", `${shownName(name)}: the SHA-256 differs on both ends`);
      }
    }
  }

  /** The complete files. The one that tar was writing is shorter; its rest is sent separately. */
  async #arrived(remote: RemotePath): Promise<Set<string>> {
    const sizes = new Map<string, number>();
    const { shell } = this.#options;
    const listing = await shell.mustRun(SIZES, [this.#staging], { encoding: "latin1" });
    for (const line of listing.split("\n")) {
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

  async *#archive(arrived: ReadonlySet<string>): AsyncGenerator<Buffer, void, void> {
    try {
      for (const entry of this.#entries) {
        if (entry.type !== "file") yield archiveHeader(entry);
        else if (!arrived.has(entry.name)) yield* this.#file(entry);
      }
      yield ARCHIVE_END;
    } catch (error) {
      this.#problem = error;
      throw error;
    }
  }

  async *#file(entry: LocalEntry): AsyncGenerator<Buffer, void, void> {
    const hash = createHash("sha256");
    const file = localPath(this.#source, entry.name);
    let bytes = 0;
    for await (const piece of entry.size <= AT_ONCE_BYTES
      ? readSmall(this.#options, file, entry)
      : readLarge(this.#options, file, entry)) {
      if (bytes === 0) yield archiveHeader(entry);
      bytes += piece.byteLength;
      hash.update(piece);
      this.#progress.advance(piece.byteLength);
      yield piece;
    }
    if (bytes === 0) yield archiveHeader(entry);
    yield archivePadding(bytes);
    this.#hashes.set(entry.name, hash.digest("hex"));
  }
}

/** Reads synchronously: using the thread pool for each step costs several times the read of a small file. */
function* readSmall(context: CopyContext, name: Buffer, entry: LocalEntry): Generator<Buffer, void, void> {
  const file = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK);
  const content = Buffer.allocUnsafeSlow(entry.size);
  try {
    let bytes = 0;
    for (let more = -1; bytes < entry.size && more !== 0; bytes += more)
      more = readSync(file, content, bytes, entry.size - bytes, bytes);
    expectStart(context, name, entry, bytes, fstatSync(file));
  } finally {
    closeSync(file);
  }
  yield content;
}

async function* readLarge(
  context: CopyContext,
  name: Buffer,
  entry: LocalEntry,
): AsyncGenerator<Buffer, void, void> {
  const file = await open(name);
  try {
    let bytes = 0;
    for await (const piece of readPieces(file, 0, entry.size)) {
      bytes += piece.byteLength;
      yield piece;
    }
    expectStart(context, name, entry, bytes, await file.stat());
  } finally {
    await file.close();
  }
}

function expectStart(
  context: CopyContext,
  file: Buffer,
  entry: LocalEntry,
  readBytes: number,
  after: Stats,
): void {
  const name = file.toString("utf8");
  if (hasOnlyGrown(name, entry, readBytes, after)) warnOfGrowth(context, name, entry.size);
}

/**
 * Sends large pieces: sending tar's 512-byte blocks one by one would be most of the work. A piece
 * is free again when the next is requested.
 */
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
