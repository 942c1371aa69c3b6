import { createHash, type Hash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { readPieces } from "./file-reader.ts";
import type { Tool } from "./remote-path.ts";
import type { RemoteShell } from "./remote-shell.ts";

/**
 * A shell function that prints the SHA-256 of a file. openssl uses the processor's instructions for it, which some builds of sha256sum do
 * not: it takes a fifth of the time.
 */
export const HASH_FUNCTION = `h() { openssl dgst -sha256 < "$1" 2>/dev/null || sha256sum < "$1"; }
`;

/** The SHA-256 of a stream that may start again somewhere in its middle. */
export class RunningHash {
  #hash: Hash = createHash("sha256");
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  update(part: Uint8Array): void {
    this.#hash.update(part);
    this.#bytes += part.byteLength;
  }

  /** Makes it that of the file's first `bytes`, by reading them where it is not. */
  async moveTo(bytes: number, file: FileHandle): Promise<void> {
    if (this.#bytes === bytes) return;
    this.#hash = createHash("sha256");
    this.#bytes = 0;
    if (bytes === 0) return;
    for await (const piece of readPieces(file, 0, bytes)) this.update(piece);
  }

  hex(): string {
    return this.#hash.copy().digest("hex");
  }
}

/** Whether the container has a program for it. */
export function canHash(tools: ReadonlySet<Tool>): boolean {
  return tools.has("sha256sum") || tools.has("openssl");
}

/** What HASH_FUNCTION printed; "" where it is no SHA-256. */
export function hashIn(text: string): string {
  return /\b[0-9a-f]{64}\b/.exec(text)?.[0] ?? "";
}

/** By the container's own program. */
export async function remoteHash(shell: RemoteShell, path: string): Promise<string> {
  return hashIn(await shell.mustRun(`${HASH_FUNCTION}h "$1"`, [path]));
}

const HASH_FOLDER = `cd "$1" || exit 1
find . -type f -exec openssl dgst -sha256 -r {} + 2>/dev/null || find . -type f -exec sha256sum {} +`;

/** Of every file below a folder, by its path from there. Names that the program would have to escape are left out. */
export async function remoteHashes(shell: RemoteShell, folder: string): Promise<Map<string, string>> {
  const text = await shell.mustRun(HASH_FOLDER, [folder]);
  const hashes = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, hash, name] = /^([0-9a-f]{64}) [ *]\.\/(.+)$/.exec(line) ?? [];
    if (hash !== undefined && name !== undefined) hashes.set(name, hash);
  }
  return hashes;
}
