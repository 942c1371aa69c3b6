import { randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { posix } from "node:path";
import { type Readable, Transform, type TransformCallback } from "node:stream";
import { CopyError } from "./copy-error.ts";
import type { CopyOptions } from "./copy-options.ts";
import { RunningHash, remoteHash } from "./hashing.ts";
import { type Progress, startProgress } from "./progress.ts";
import { partialName, type RemotePath } from "./remote-path.ts";
import { remoteFailure } from "./remote-shell.ts";
import { isInterruption, withRetries } from "./retry.ts";

/**
 * The writer leaves its number, so that it can be stopped should its connection be lost. It is a child: containerd takes a
 * command whose stdout is closed for one that needs no more input, and cuts that off (containerd#13934).
 */
const writer = (redirection: string): string =>
  `exec 3<&0; cat <&3 3<&- ${redirection} "$1" & echo $! > "$1.pid"; exec 3<&-; wait $!`;
const READ_BYTES = 1024 * 1024;
const WRITE = writer(">");
const APPEND = writer(">>");
/** Stops a writer of before, by its number and only while it holds this file open, and tells how far it came. */
const HOW_FAR = `p="$1"; if [ -f "$p.pid" ]; then i=$(cat "$p.pid"); n=0
while [ -n "$i" ] && [ "$(readlink "/proc/$i/fd/1" 2>/dev/null)" = "$p" ] && [ $n -lt 20 ]; do kill -9 "$i" 2>/dev/null; sleep 1; n=$((n+1)); done; fi
if [ -f "$p" ]; then wc -c < "$p"; else echo 0; fi`;
const FINISH = 'if [ -n "$3" ]; then chmod "$3" "$1"; fi; rm -f "$1.pid" && mv -f "$1" "$2"';
const REMOVE = 'rm -f "$1" "$1.pid"';

/**
 * Copies a local file to `destination` in the container, where it appears whole or not at all: it grows under another name
 * beside it. A copy that broke off is gone on with where its SHA-256 can be checked at the end.
 *
 * Throws CopyError, ConnectError, SessionError.
 */
export async function uploadFile(
  source: string,
  destination: string,
  remote: RemotePath,
  options: CopyOptions,
): Promise<void> {
  const before = await stat(source, { bigint: true }).catch(localFailure);
  const progress = startProgress(posix.basename(destination), Number(before.size), options.isQuiet);
  const hash = new RunningHash();
  const upload = new Upload(destination, remote, options, progress, hash);
  const attempt = async (): Promise<void> => {
    const offset = await upload.offset(Number(before.size));
    await hash.moveTo(offset, source);
    await upload.send(createReadStream(source, { start: offset, highWaterMark: READ_BYTES }), offset);
  };
  try {
    await withRetries(attempt, {
      ...options,
      progress: () => upload.safeBytes,
      note: options.verbosity.note,
    });
    const after = await stat(source, { bigint: true }).catch(localFailure);
    if (after.size !== before.size || after.mtimeNs !== before.mtimeNs || after.ino !== before.ino) {
      throw new CopyError("changed", `${source}: file changed as we read it`);
    }
    await upload.finish(options.preservesMode ? (Number(before.mode) & 0o777).toString(8) : "");
  } catch (error) {
    await upload.abandon(error);
    throw error;
  } finally {
    progress.stop();
  }
}

/** The same of a stream, which cannot be read twice: a lost connection ends it. */
export async function uploadStream(
  source: Readable,
  destination: string,
  remote: RemotePath,
  options: CopyOptions,
): Promise<void> {
  const upload = new Upload(
    destination,
    remote,
    options,
    startProgress(destination, 0, options.isQuiet),
    new RunningHash(),
  );
  try {
    await upload.send(source, 0);
    await upload.finish("");
  } catch (error) {
    await upload.abandon(new CopyError("remote", "a stream cannot be gone on with"));
    throw error;
  }
}

class Upload {
  readonly #destination: string;
  readonly #remote: RemotePath;
  readonly #options: CopyOptions;
  readonly #progress: Progress;
  readonly #hash: RunningHash;
  #partial: string;
  #hasStarted = false;
  /** What is known to be in the container. */
  safeBytes = 0;

  constructor(
    destination: string,
    remote: RemotePath,
    options: CopyOptions,
    progress: Progress,
    hash: RunningHash,
  ) {
    this.#destination = destination;
    this.#remote = remote;
    this.#options = options;
    this.#progress = progress;
    this.#hash = hash;
    this.#partial = partialName(destination);
  }

  /** Where to go on: only where the result can be checked, for a writer of before may not have stopped in time. */
  async offset(sourceBytes: number): Promise<number> {
    const hadStarted = this.#hasStarted;
    this.#hasStarted = true;
    if (!this.#canCheck) {
      if (hadStarted) this.#partial = `${partialName(this.#destination)}.${randomBytes(4).toString("hex")}`;
      this.safeBytes = 0;
      return 0;
    }
    const found = Number((await this.#options.shell.mustRun(HOW_FAR, [this.#partial])).trim());
    this.safeBytes = Number.isInteger(found) && found <= sourceBytes ? found : 0;
    this.#progress.moveTo(this.safeBytes);
    return this.safeBytes;
  }

  async send(source: Readable, offset: number): Promise<void> {
    const meter = new Transform({
      highWaterMark: READ_BYTES,
      transform: (chunk: Buffer, _encoding, done: TransformCallback) => {
        this.#hash.update(chunk);
        this.#progress.advance(chunk.byteLength);
        done(null, chunk);
      },
    });
    source.on("error", (error) => meter.destroy(error));
    source.pipe(meter);
    try {
      const { shell, signal } = this.#options;
      const script = offset === 0 ? WRITE : APPEND;
      const result = await shell.script(script, [this.#partial], { stdin: meter, signal });
      if (result.exitCode !== 0) throw remoteFailure(result);
    } finally {
      source.unpipe(meter);
      meter.destroy();
      if (source !== process.stdin) source.destroy();
    }
  }

  async finish(mode: string): Promise<void> {
    const { shell } = this.#options;
    if (this.#canCheck && (await remoteHash(shell, this.#partial)) !== this.#hash.hex()) {
      throw new CopyError("mismatch", `${this.#destination}: the SHA-256 differs on both ends`);
    }
    if (!this.#canCheck) {
      const arrived = Number((await shell.mustRun('wc -c < "$1"', [this.#partial])).trim());
      if (arrived !== this.#hash.bytes) {
        throw new CopyError(
          "mismatch",
          `${this.#destination}: ${arrived} bytes arrived of ${this.#hash.bytes}`,
        );
      }
    }
    await shell.mustRun(FINISH, [this.#partial, this.#destination, mode]);
  }

  /** Leaves nothing behind but what a later call may go on with. */
  async abandon(error: unknown): Promise<void> {
    if (isInterruption(error) && this.#canCheck) return;
    await this.#options.shell.script(REMOVE, [this.#partial]).catch(() => {});
  }

  get #canCheck(): boolean {
    return this.#options.verifies && this.#remote.tools.has("sha256sum");
  }
}

function localFailure(error: NodeJS.ErrnoException): never {
  throw new CopyError("local", error.message, { cause: error });
}
