import { createHash, type Hash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { poisonFreed } from "../net/freed-memory.ts";
import type { Tool } from "./remote-path.ts";
import type { RemoteShell } from "./remote-shell.ts";

/**
 * A shell function that prints a file's SHA-256. openssl takes a fifth of the time of those
 * sha256sum builds that do not use the processor's instructions.
 */
export const HASH_FUNCTION = `h() { openssl dgst -sha256 < "$1" 2>/dev/null || sha256sum < "$1"; }
`;

/**
 * Distance between the points to which a hash can return without reading from the start, and how
 * many are kept.
 */
const CHECKPOINT_BYTES = 4 * 1024 * 1024;
/**
 * Points, CHECKPOINT_BYTES apart, to which an upload's hash can return. Past it the file is read
 * again from its start.
 */
const MAX_CHECKPOINTS = 16;

/** The SHA-256 of a stream that may restart in its middle. */
export class RunningHash {
  #hash: Hash = createHash("sha256");
  #bytes = 0;
  #checkpoints: { readonly bytes: number; readonly hash: Hash }[] = [];

  get bytes(): number {
    return this.#bytes;
  }

  update(part: Uint8Array): void {
    this.#hash.update(part);
    this.#bytes += part.byteLength;
    if (this.#bytes < (this.#checkpoints.at(-1)?.bytes ?? 0) + CHECKPOINT_BYTES) return;
    this.#checkpoints.push({ bytes: this.#bytes, hash: this.#hash.copy() });
    if (this.#checkpoints.length > MAX_CHECKPOINTS) this.#checkpoints.shift();
  }

  /** Moves the hash to the file's first `bytes`, reading them again if necessary. */
  async moveTo(bytes: number, file: FileHandle): Promise<void> {
    if (this.#bytes === bytes) return;
    this.#checkpoints = this.#checkpoints.filter((checkpoint) => checkpoint.bytes <= bytes);
    const from = this.#checkpoints.at(-1);
    this.#hash = from === undefined ? createHash("sha256") : from.hash.copy();
    this.#bytes = from?.bytes ?? 0;
    for await (const piece of readPieces(file, this.#bytes, bytes)) this.update(piece);
  }

  hex(): string {
    return this.#hash.copy().digest("hex");
  }
}

/** Whether the container has a program for SHA-256. */
export function canHash(tools: ReadonlySet<Tool>): boolean {
  return tools.has("sha256sum") || tools.has("openssl");
}

/** The output of HASH_FUNCTION; "" if it is not a SHA-256. */
export function hashIn(text: string): string {
  return /\b[0-9a-f]{64}\b/.exec(text)?.[0] ?? "";
}

const HASH_FOLDER = `cd "$1" || exit 1
find . -type f -exec openssl dgst -sha256 -r {} + 2>/dev/null || find . -type f -exec sha256sum {} +`;

/**
 * The hashes of all files below a folder, by relative path in bytes, one character each. Omits
 * names that the program would have to escape.
 */
export async function remoteHashes(shell: RemoteShell, folder: string): Promise<Map<string, string>> {
  const text = await shell.mustRun(HASH_FOLDER, [folder], { encoding: "latin1" });
  const hashes = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, hash, name] = /^([0-9a-f]{64}) [ *]\.\/(.+)$/.exec(line) ?? [];
    if (hash !== undefined && name !== undefined) hashes.set(name, hash);
  }
  return hashes;
}

/** Bytes per read. */
const PIECE_BYTES = 960 * 1024;

/** The bytes of a file in [start, end), one piece ahead of its reader. A piece is valid until the next one is requested. */
export async function* readPieces(
  file: FileHandle,
  start: number,
  end: number,
): AsyncGenerator<Buffer, void, void> {
  const pieceBytes = Math.max(1, Math.min(PIECE_BYTES, end - start));
  let [memory, spare] = [Buffer.allocUnsafeSlow(pieceBytes), Buffer.allocUnsafeSlow(pieceBytes)];
  const read = (into: Buffer, position: number) =>
    file.read(into, 0, Math.min(into.byteLength, end - position), position);
  let position = start;
  let reading = read(memory, position);
  try {
    for (;;) {
      const { bytesRead } = await reading;
      if (bytesRead === 0) return;
      position += bytesRead;
      reading = read(spare, position);
      // The next iteration awaits it.
      reading.catch(() => {});
      yield memory.subarray(0, bytesRead);
      poisonFreed(memory);
      [memory, spare] = [spare, memory];
    }
  } finally {
    await reading.catch(() => {});
  }
}
