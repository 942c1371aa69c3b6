import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FileWriter } from "../../../../packages/client/src/copy/file-writer.ts";
import { readPieces } from "../../../../packages/client/src/copy/hashing.ts";

const bytes = randomBytes(3 * 1024 * 1024 + 17);
let folder: string;
let name: string;
let file: FileHandle | undefined;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-pieces-"));
  name = path.join(folder, "file");
});
afterEach(async () => {
  await file?.close();
  file = undefined;
  rmSync(folder, { recursive: true, force: true });
});

describe("FileWriter", () => {
  it.each([
    1_000,
    65_536,
    1024 * 1024,
    2_500_000,
  ])("writes parts of %i, which are overwritten at once, in order and behind what is there", async (partBytes) => {
    writeFileSync(name, "ahead");
    file = await open(name, "r+");
    const pieces: Buffer[] = [];
    const writer = new FileWriter(file, 5, (piece) => pieces.push(Buffer.from(piece)));
    const memory = new Uint8Array(partBytes);
    for (let at = 0; at < bytes.byteLength; at += partBytes) {
      const part = bytes.subarray(at, at + partBytes);
      memory.set(part);
      await writer.takePart(memory.subarray(0, part.byteLength));
      memory.fill(0);
    }
    await writer.finish();
    expect(readFileSync(name).equals(Buffer.concat([Buffer.from("ahead"), bytes]))).toBe(true);
    expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
  });

  it("holds its source up while the disk is slow", async () => {
    let release = (): void => {};
    const write = async (_from: Buffer, _offset: number, length: number) => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      return { bytesWritten: length };
    };
    const writer = new FileWriter({ write } as unknown as FileHandle, 0, () => {});
    const piece = Buffer.alloc(1024 * 1024);
    expect(writer.takePart(piece)).toBeUndefined();
    expect(writer.takePart(piece)).toBeUndefined();
    const held = writer.takePart(piece);
    expect(held).toBeInstanceOf(Promise);
    const releasing = setInterval(() => release(), 0);
    await held;
    clearInterval(releasing);
    expect(writer.takePart(piece)).toBeUndefined();
  });

  it("goes on where the disk took a part, and tells its error to whoever asks next", async () => {
    const taken: number[] = [];
    const write = async (_from: Buffer, _offset: number, length: number, position: number) => {
      taken.push(position);
      if (taken.length > 2) throw Object.assign(new Error("ENOSPC"), { syscall: "write" });
      return { bytesWritten: Math.min(length, 1_000) };
    };
    const writer = new FileWriter({ write } as unknown as FileHandle, 10, () => {});
    expect(writer.takePart(Buffer.alloc(1024 * 1024))).toBeUndefined();
    await expect(writer.finish()).rejects.toThrow("ENOSPC");
    expect(taken).toEqual([10, 1_010, 2_010]);
  });
});

describe("readPieces", () => {
  it.each([
    [0, bytes.byteLength],
    [1_000_001, bytes.byteLength],
    [5, 6],
    [0, 0],
    [bytes.byteLength - 3, bytes.byteLength + 100],
  ])("gives what is from byte %i to before %i", async (start, end) => {
    writeFileSync(name, bytes);
    file = await open(name);
    const pieces: Buffer[] = [];
    for await (const piece of readPieces(file, start, end)) pieces.push(Buffer.from(piece));
    expect(Buffer.concat(pieces).equals(bytes.subarray(start, end))).toBe(true);
  });

  it("a reader that stops early leaves no read under way", async () => {
    writeFileSync(name, bytes);
    file = await open(name);
    for await (const piece of readPieces(file, 0, bytes.byteLength)) {
      expect(piece.byteLength).toBeGreaterThan(0);
      break;
    }
    await file.close();
    file = undefined;
  });
});
