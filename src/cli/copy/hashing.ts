import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { RemoteShell } from "./remote-shell.ts";

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
  async moveTo(bytes: number, file: string): Promise<void> {
    if (this.#bytes === bytes) return;
    this.#hash = createHash("sha256");
    this.#bytes = 0;
    if (bytes === 0) return;
    for await (const part of createReadStream(file, { end: bytes - 1 })) this.update(part as Buffer);
  }

  hex(): string {
    return this.#hash.copy().digest("hex");
  }
}

/** By the container's own program. */
export async function remoteHash(shell: RemoteShell, path: string): Promise<string> {
  return (await shell.mustRun('sha256sum < "$1"', [path])).trim().split(/\s/)[0] ?? "";
}

/** Of every file below a folder, by its path from there. Names that the program would have to escape are left out. */
export async function remoteHashes(shell: RemoteShell, folder: string): Promise<Map<string, string>> {
  const text = await shell.mustRun('cd "$1" && find . -type f -exec sha256sum {} +', [folder]);
  const hashes = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, hash, name] = /^([0-9a-f]{64}) [ *]\.\/(.+)$/.exec(line) ?? [];
    if (hash !== undefined && name !== undefined) hashes.set(name, hash);
  }
  return hashes;
}
