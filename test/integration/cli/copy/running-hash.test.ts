import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RunningHash } from "../../../../packages/client/src/copy/hashing.ts";

const MIB = 1024 * 1024;
const bytes = randomBytes(100 * MIB);
let folder: string;
let file: FileHandle;
beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-hash-"));
  writeFileSync(path.join(folder, "file"), bytes);
  file = await open(path.join(folder, "file"));
});
afterAll(async () => {
  await file.close();
  rmSync(folder, { recursive: true, force: true });
});

const expected = (length: number) => createHash("sha256").update(bytes.subarray(0, length)).digest("hex");

/** Of all bytes, with the bytes that it read from the file meanwhile. */
function hashed(): { hash: RunningHash; source: FileHandle; read: () => number } {
  const hash = new RunningHash();
  for (let at = 0; at < bytes.byteLength; at += MIB) hash.update(bytes.subarray(at, at + MIB));
  let read = 0;
  const source = {
    read: async (memory: Buffer, offset: number, length: number, position: number) => {
      const result = await file.read(memory, offset, length, position);
      read += result.bytesRead;
      return result;
    },
  } as unknown as FileHandle;
  return { hash, source, read: () => read };
}

it.each([
  [100 * MIB, 0],
  [99 * MIB + 1, 4 * MIB],
  [60 * MIB, 4 * MIB],
  [20 * MIB, 20 * MIB],
  [0, 0],
])("goes back to byte %i by reading no more than %i bytes again", async (to, most) => {
  const { hash, source, read } = hashed();
  await hash.moveTo(to, source);
  expect([hash.bytes, hash.hex()]).toEqual([to, expected(to)]);
  expect(read()).toBeLessThanOrEqual(most);
  hash.update(bytes.subarray(to));
  expect(hash.hex()).toBe(expected(bytes.byteLength));
});

it("goes ahead to what another process has left", async () => {
  const hash = new RunningHash();
  await hash.moveTo(7 * MIB + 5, file);
  expect(hash.hex()).toBe(expected(7 * MIB + 5));
});
