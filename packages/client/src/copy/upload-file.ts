import { randomBytes } from "node:crypto";
import { open } from "node:fs/promises";
import { posix } from "node:path";
import type { Readable } from "node:stream";
import { SessionError } from "../sessions/session-error.ts";
import type { CopyContext, CopyProgress } from "./copy-context.ts";
import { CopyError, isInterruption, localError, withRetries } from "./copy-error.ts";
import { canHash, hashIn, RunningHash, readPieces } from "./hashing.ts";
import { hasOnlyGrown, warnOfGrowth } from "./remote-growth.ts";
import { bytesIn, partialName, type RemotePath } from "./remote-path.ts";
import { remoteFailure } from "./remote-shell.ts";
import { APPEND, FINISH, HOW_FAR, REMOVE, WRITE, WRITE_AND_HASH } from "./upload-scripts.ts";

/**
 * From this size on sha256sum hashes while the file grows, since hashing may take as long as the
 * network. openssl is fast enough at the end.
 */
const HASHED_MEANWHILE_BYTES = 64 * 1024 * 1024;
/** Each command sends at least this much, even over a bad network. */
const MIN_LIMIT_BYTES = 64 * 1024;

/**
 * Copies a file to `destination`, which appears complete or not at all; resumes if its SHA-256 can
 * be checked. Resolves to that, in hexadecimal. Throws CopyError, ConnectError, SessionError.
 */
export async function uploadFile(
  source: string,
  destination: string,
  remote: RemotePath,
  options: CopyContext,
): Promise<string> {
  const file = await open(source).catch(localFailure);
  try {
    const state = () => file.stat().catch(localFailure);
    const before = await state();
    const { size } = before;
    let hasGrown = false;
    const progress = await options.startProgress(posix.basename(destination), size);
    const upload = new Upload(destination, remote, options, progress);
    const attempt = async (): Promise<void> => {
      let offset = await upload.offset(size);
      for (;;) {
        const end = Math.min(size, offset + upload.limitBytes);
        await upload.hash.moveTo(offset, file);
        await upload.send(local(readPieces(file, offset, end)), {
          offset,
          bytes: end - offset,
          isLast: end === size,
        });
        hasGrown = hasOnlyGrown(source, before, upload.hash.bytes + size - end, await state());
        if (end === size) return;
        upload.arrived(end);
        offset = end;
      }
    };
    const arrive = async (): Promise<void> => {
      await withRetries(attempt, { ...options, progress: () => upload.safeBytes });
      upload.check();
    };
    try {
      await arrive().catch(async (error: Error) => {
        if (!upload.beginAgain(error)) throw error;
        options.note(`an earlier command may have written, too, beginning again: ${error.message}`);
        await arrive();
      });
      await upload.finish(options.preservesMode ? (before.mode & 0o777).toString(8) : "");
      if (hasGrown) warnOfGrowth(options, source, size);
      return upload.hash.hex();
    } catch (error) {
      await upload.abandon(error);
      throw error;
    } finally {
      progress.stop();
    }
  } finally {
    await file.close();
  }
}

/** Uploads a stream, which cannot be read twice: a lost connection ends it. */
export async function uploadStream(
  source: Readable,
  destination: string,
  remote: RemotePath,
  options: CopyContext,
): Promise<void> {
  const upload = new Upload(destination, remote, options, await options.startProgress(destination, 0));
  try {
    await upload.send(source, { offset: 0, bytes: 0, isLast: true });
    upload.check();
    await upload.finish("");
  } catch (error) {
    await upload.abandon(new CopyError("remote", "a stream cannot be gone on with"));
    throw error;
  }
}

/** The bytes that one command sends. `bytes`: 0 if unknown. */
interface Part {
  readonly offset: number;
  readonly bytes: number;
  readonly isLast: boolean;
}

class Upload {
  readonly #destination: string;
  readonly #remote: RemotePath;
  readonly #options: CopyContext;
  readonly #progress: CopyProgress;
  readonly hash = new RunningHash();
  #partial: string;
  #hasStarted = false;
  /** A command of this upload lost its connection. It may still begin to write, after HOW_FAR looked. */
  #wasInterrupted = false;
  /** The next attempt removes the partial file and takes another name. */
  #isSpoiled = false;
  /** No earlier writer can still be running. */
  #isAlone: boolean;
  /** The container's report: a SHA-256, or a number of bytes. */
  #theirs = "";
  /** Bytes known to be in the container. */
  safeBytes = 0;
  /**
   * The most that one command sends. It shrinks if lost connections waste most of it; bytes that
   * arrived are kept.
   */
  limitBytes = Number.POSITIVE_INFINITY;

  constructor(destination: string, remote: RemotePath, options: CopyContext, progress: CopyProgress) {
    this.#destination = destination;
    this.#remote = remote;
    this.#options = options;
    this.#progress = progress;
    this.#partial = partialName(destination);
    this.#isAlone = !remote.hasPartial;
  }

  /**
   * The offset to resume from. Resumes only if the result can be checked, because an earlier writer
   * may not have stopped in time.
   */
  async offset(sourceBytes: number): Promise<number> {
    const hadStarted = this.#hasStarted;
    this.#hasStarted = true;
    this.#wasInterrupted ||= hadStarted;
    if (!hadStarted && (!this.#remote.hasPartial || !this.#canCheck)) return 0;
    if (this.#isSpoiled || !this.#canCheck) {
      this.safeBytes = 0;
      this.#progress.moveTo(0);
      await this.#options.shell.mustRun(REMOVE, [this.#partial]);
      this.#partial = `${partialName(this.#destination)}.${randomBytes(4).toString("hex")}`;
      this.#isSpoiled = false;
      return 0;
    }
    const found = bytesIn(await this.#options.shell.mustRun(HOW_FAR, [this.#partial]));
    const sentBytes = this.hash.bytes - this.safeBytes;
    const gainedBytes = found - this.safeBytes;
    if (gainedBytes < sentBytes / 2) this.limitBytes = Math.max(MIN_LIMIT_BYTES, Math.trunc(sentBytes / 2));
    this.safeBytes = Number.isInteger(found) && found <= sourceBytes ? found : 0;
    this.#progress.moveTo(this.safeBytes);
    return this.safeBytes;
  }

  /** Notes that all bytes before `bytes` arrived. Throws CopyError "mismatch" if the container disagrees. */
  arrived(bytes: number): void {
    if (bytesIn(this.#theirs) !== bytes) {
      throw new CopyError(
        "mismatch",
        `${this.#destination}: ${this.#theirs.trim()} bytes arrived of ${bytes}`,
      );
    }
    this.safeBytes = bytes;
    this.limitBytes *= 2;
  }

  /** True if an earlier command explains the error: the next attempt then begins anew. */
  beginAgain(error: unknown): boolean {
    this.#isSpoiled = this.#wasInterrupted && error instanceof CopyError && error.code === "mismatch";
    return this.#isSpoiled;
  }

  /** Reads `source` once, to its end or until this throws. */
  async send(source: AsyncIterable<Buffer>, { offset, bytes, isLast }: Part): Promise<void> {
    const { shell } = this.#options;
    const isHashed = this.#canCheck && isLast;
    const isHashedMeanwhile =
      isHashed && this.#isAlone && bytes >= HASHED_MEANWHILE_BYTES && !this.#remote.tools.has("openssl");
    this.#isAlone = false;
    const script = isHashedMeanwhile ? WRITE_AND_HASH : offset === 0 ? WRITE : APPEND;
    const args = [this.#partial, isHashed ? "hash" : ""];
    const result = await shell.script(script, args, { stdin: this.#metered(source) }).catch(throwLocalCause);
    if (result.exitCode !== 0) throw remoteFailure(result);
    this.#theirs = result.stdout;
  }

  async *#metered(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
    for await (const piece of source) {
      this.hash.update(piece);
      this.#progress.advance(piece.byteLength);
      yield piece;
    }
  }

  /** Throws CopyError "mismatch" if the container has other bytes. */
  check(): void {
    const { bytes } = this.hash;
    if (this.#canCheck && hashIn(this.#theirs) !== this.hash.hex()) {
      throw new CopyError("mismatch", `${this.#destination}: the SHA-256 differs on both ends`);
    }
    if (!this.#canCheck && bytesIn(this.#theirs) !== bytes) {
      throw new CopyError(
        "mismatch",
        `${this.#destination}: ${this.#theirs.trim()} bytes arrived of ${bytes}`,
      );
    }
  }

  async finish(mode: string): Promise<void> {
    let isAgain = false;
    const size = this.#wasInterrupted ? String(this.hash.bytes) : "";
    const finish = async (): Promise<string> => {
      const again = isAgain && this.#canCheck ? "again" : "";
      isAgain = true;
      return this.#options.shell.mustRun(FINISH, [this.#partial, this.#destination, mode, again, size]);
    };
    const there = await withRetries(finish, { ...this.#options, progress: () => 0 });
    if (there !== "" && hashIn(there) !== this.hash.hex()) {
      throw new CopyError("mismatch", `${this.#destination}: replaced while it was put there`);
    }
  }

  /** Removes everything that a later call cannot resume. */
  async abandon(error: unknown): Promise<void> {
    const isFoundLater = this.#partial === partialName(this.#destination) && !this.#isSpoiled;
    if (isInterruption(error) && this.#canCheck && isFoundLater) return;
    await this.#options.shell.cleanUp(REMOVE, [this.#partial]);
  }

  get #canCheck(): boolean {
    return this.#options.verifies && canHash(this.#remote.tools);
  }
}

/** A read error is a local failure, not one of the session that it ends. */
async function* local(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  try {
    yield* pieces;
  } catch (error) {
    localFailure(error as Error);
  }
}

function throwLocalCause(error: unknown): never {
  throw error instanceof SessionError && error.cause instanceof CopyError ? error.cause : error;
}

function localFailure(error: Error): never {
  throw localError(error);
}
