import { createHash, type Hash } from "node:crypto";

/** One file, folder or link of a tar archive. */
export interface ArchivedFile {
  /** Cut after MAX_NAME_CHARACTERS. */
  readonly name: string;
  readonly type: "file" | "folder" | "link" | "other";
  /** In octal digits, as in the archive. */
  readonly mode: string;
  /** In bytes, as the archive's header states. */
  readonly size: number;
  /** In base64; only for files. */
  readonly sha256?: string | undefined;
  /** Set if the archive ended within the file: `sha256` then covers only this many bytes. */
  readonly cutAt?: number | undefined;
}

const BLOCK = 512;
/** The longest name in a recording, in characters. Past it the name is cut. */
const MAX_NAME_CHARACTERS = 1_024;
/** The payload of an extended header, such as a long name. Past it the rest is recorded as output. */
const MAX_EXTENSION_BYTES = 64 * 1024;

interface Entry {
  readonly name: string;
  readonly mode: string;
  readonly kind: string;
  readonly size: number;
  readonly hash: Hash | undefined;
  /** The payload of an extended header. */
  readonly payload: Buffer[];
  left: number;
  padding: number;
}

/** Reads a tar archive as its bytes pass, and keeps digests instead of contents. Pure. */
export class ArchiveReader {
  readonly #onFile: (file: ArchivedFile) => void;
  #held: Buffer = Buffer.alloc(0);
  #entry: Entry | undefined;
  #longName: string | undefined;
  #longSize: number | undefined;
  #isOver = false;

  constructor(onFile: (file: ArchivedFile) => void) {
    this.#onFile = onFile;
  }

  /** The file whose content is being read; the same object until the file ends. */
  get current(): { readonly name: string; readonly size: number } | undefined {
    return this.#entry?.hash === undefined ? undefined : this.#entry;
  }

  /**
   * Returns bytes that are not part of an archive; all later bytes are not, either. Keeps no view of
   * `part`.
   */
  push(part: Uint8Array): Uint8Array | undefined {
    if (this.#isOver) return part;
    let rest: Uint8Array = part;
    while (rest.byteLength > 0) {
      if (this.#entry === undefined) {
        const header = this.#headerOf(rest);
        if (header === undefined) return undefined;
        rest = header.rest;
        if (!this.#begin(header.block)) return this.#give(header.block, rest);
      } else rest = this.#content(this.#entry, rest);
    }
    return undefined;
  }

  /** Stops reading the archive. Returns the bytes of an incomplete header. */
  end(): Uint8Array | undefined {
    this.#isOver = true;
    const entry = this.#entry;
    this.#entry = undefined;
    if (entry !== undefined) this.#report(entry);
    const held = this.#held;
    this.#held = Buffer.alloc(0);
    return held.byteLength > 0 ? held : undefined;
  }

  #headerOf(rest: Uint8Array): { readonly block: Buffer; readonly rest: Uint8Array } | undefined {
    const missing = BLOCK - this.#held.byteLength;
    const block = Buffer.concat([this.#held, rest.subarray(0, missing)]);
    this.#held = block.byteLength < BLOCK ? block : Buffer.alloc(0);
    return block.byteLength < BLOCK ? undefined : { block, rest: rest.subarray(missing) };
  }

  /** Returns false if the block is not a header. */
  #begin(block: Buffer): boolean {
    // Blocks of zeros end an archive and pad it.
    if (block.every((byte) => byte === 0)) return true;
    const size = sizeIn(block);
    if (!hasChecksum(block) || size === undefined) return false;
    const kind = String.fromCharCode(block[156] as number);
    const isExtension = "xgLK".includes(kind);
    if (isExtension && size > MAX_EXTENSION_BYTES) return false;
    const prefix =
      block.toString("latin1", 257, 262) === "ustar" && block[263] !== 0x20 ? textIn(block, 345, 155) : "";
    const name = `${prefix === "" ? "" : `${prefix}/`}${textIn(block, 0, 100)}`;
    const isFile = kind === "0" || kind === "\0" || kind === "7";
    const length = isExtension ? size : isFile ? (this.#longSize ?? size) : 0;
    this.#entry = {
      name: (isExtension ? name : (this.#longName ?? name)).slice(0, MAX_NAME_CHARACTERS),
      mode: textIn(block, 100, 8)
        .trim()
        .replace(/^0+(?=\d)/, ""),
      kind,
      size: length,
      hash: isFile ? createHash("sha256") : undefined,
      payload: [],
      left: length,
      padding: (BLOCK - (length % BLOCK)) % BLOCK,
    };
    if (!isExtension) this.#longName = this.#longSize = undefined;
    if (length === 0) this.#finish(this.#entry);
    return true;
  }

  #content(entry: Entry, rest: Uint8Array): Uint8Array {
    const own = rest.subarray(0, entry.left);
    entry.left -= own.byteLength;
    entry.hash?.update(own);
    if (entry.hash === undefined && own.byteLength > 0) entry.payload.push(Buffer.from(own));
    const padding = Math.min(entry.padding, rest.byteLength - own.byteLength);
    entry.padding -= padding;
    if (entry.left === 0 && entry.padding === 0) this.#finish(entry);
    return rest.subarray(own.byteLength + padding);
  }

  #finish(entry: Entry): void {
    this.#entry = undefined;
    const payload = Buffer.concat(entry.payload);
    if (entry.kind === "L") this.#longName = payload.toString("utf8").replace(/\0.*$/s, "");
    else if (entry.kind === "x") {
      const { path, size } = paxOf(payload);
      this.#longName = path ?? this.#longName;
      this.#longSize = size;
    } else if (!"gK".includes(entry.kind)) this.#report(entry);
  }

  #report({ name, kind, mode, size, hash, left }: Entry): void {
    const type =
      hash !== undefined ? "file" : kind === "5" ? "folder" : "12".includes(kind) ? "link" : "other";
    this.#onFile({
      name,
      type,
      mode,
      size,
      ...(hash !== undefined && { sha256: hash.digest("base64") }),
      ...(left > 0 && { cutAt: size - left }),
    });
  }

  #give(block: Buffer, rest: Uint8Array): Uint8Array {
    this.#isOver = true;
    return Buffer.concat([block, rest]);
  }
}

function textIn(block: Buffer, at: number, length: number): string {
  const bytes = block.subarray(at, at + length);
  const end = bytes.indexOf(0);
  return bytes.toString("utf8", 0, end === -1 ? length : end);
}

/** Reads an octal number or, for large files, GNU's base-256 number. */
function sizeIn(block: Buffer): number | undefined {
  const isBinary = ((block[124] as number) & 0x80) !== 0;
  const text = textIn(block, 124, 12).trim();
  const size = isBinary ? Number(block.readBigUInt64BE(128)) : text === "" ? 0 : octal(text);
  return Number.isSafeInteger(size) ? size : undefined;
}

function octal(text: string): number {
  return /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : Number.NaN;
}

function hasChecksum(block: Buffer): boolean {
  let sum = 0;
  for (const [index, byte] of block.entries()) sum += index >= 148 && index < 156 ? 0x20 : byte;
  return octal(textIn(block, 148, 8).trim()) === sum;
}

/** Parses PAX records: `LENGTH KEY=VALUE\n`. */
function paxOf(payload: Buffer): { readonly path: string | undefined; readonly size: number | undefined } {
  const values = new Map<string, string>();
  for (let at = 0; at < payload.byteLength; ) {
    const space = payload.indexOf(0x20, at);
    const length = Number(payload.toString("latin1", at, Math.max(at, space)));
    if (space === -1 || !Number.isSafeInteger(length) || length <= space - at) break;
    const record = payload.toString("utf8", space + 1, at + length - 1);
    const equals = record.indexOf("=");
    values.set(record.slice(0, equals), record.slice(equals + 1));
    at += length;
  }
  const size = Number(values.get("size") ?? Number.NaN);
  return { path: values.get("path"), size: Number.isSafeInteger(size) && size >= 0 ? size : undefined };
}
