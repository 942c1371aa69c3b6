import { constants, inflateRawSync } from "node:zlib";
import { readUint16, readUint32, writeUint32 } from "../bytes/index.ts";
import { ProtocolError } from "../protocol-error.ts";

// The preset dictionary of SPDY/3 (draft-mbelshe-httpbis-spdy-00 section 2.6.10.1). It starts like
// a header block, with length-prefixed words, and ends in unstructured text.
const WORDS = [
  ...["options", "head", "post", "put", "delete", "trace"],
  ...["accept", "accept-charset", "accept-encoding", "accept-language", "accept-ranges"],
  ...["age", "allow", "authorization", "cache-control", "connection"],
  ...["content-base", "content-encoding", "content-language", "content-length"],
  ...["content-location", "content-md5", "content-range", "content-type"],
  ...["date", "etag", "expect", "expires", "from", "host"],
  ...["if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since"],
  ...["last-modified", "location", "max-forwards", "pragma", "proxy-authenticate", "proxy-authorization"],
  ...["range", "referer", "retry-after", "server", "te", "trailer", "transfer-encoding", "upgrade"],
  ...["user-agent", "vary", "via", "warning", "www-authenticate"],
  ...["method", "get", "status", "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie"],
  ...["keep-alive", "origin"],
];

const TAIL = [
  "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505",
  "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized",
  "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable",
  "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT",
  "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,",
  "text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdch",
  "charset=utf-8charset=iso-8859-1,utf-,*,enq=0.",
].join("");

export const HEADER_DICTIONARY: Uint8Array = buildDictionary();

/**
 * Adler-32 of the dictionary. The first block of each direction names it as DICTID (RFC 1950
 * section 2.2).
 */
const HEADER_DICTIONARY_ID = 0xe3c6_a7c2;

function buildDictionary(): Uint8Array {
  const text = new TextEncoder();
  const bytes = new Uint8Array(WORDS.reduce((sum, word) => sum + 4 + word.length, TAIL.length));
  let offset = 0;
  for (const word of WORDS) {
    writeUint32(bytes, offset, word.length);
    offset += 4;
    offset += text.encodeInto(word, bytes.subarray(offset)).written;
  }
  text.encodeInto(TAIL, bytes.subarray(offset));
  return bytes;
}

// SPDY compresses one direction's header blocks with one zlib stream (RFC 1950) that is flushed after each block
// and never ends. Node has no public synchronous zlib stream, and an asynchronous one would cost the session a
// queue, because blocks must be inflated in order. But a deflate stream's only memory is its last 32 KiB of
// plaintext, and a sync flush ends on a byte. So each block is inflated separately, with that plaintext as the
// preset dictionary.

const WINDOW_BYTES = 32 * 1024;
const ZLIB_HEADER_BYTES = 6;
const SYNC_FLUSH_TAIL = 0x0000_ffff;
/** The size of zlib's output pieces: Kubernetes' blocks inflate to only 30 to 100 bytes. */
const INFLATE_CHUNK_BYTES = 1024;

/** Inflates one direction's header blocks. Give it every block in order, even those of refused streams. */
export class HeaderDecompressor {
  readonly #maxHeaderBlockBytes: number;
  /** undefined until the first block, whose zlib header defines the initial window. */
  #window: Uint8Array | undefined;

  constructor(maxHeaderBlockBytes: number) {
    this.#maxHeaderBlockBytes = maxHeaderBlockBytes;
  }

  /** Throws `malformed-header-block`, or `header-block-too-large` without inflating beyond the limit. */
  decompress(block: Uint8Array): Uint8Array {
    const isFirst = this.#window === undefined;
    const window = this.#window ?? startOf(block);
    const deflated = isFirst ? block.subarray(ZLIB_HEADER_BYTES) : block;
    // A block that ended elsewhere would leave bits for the next one (SPDY/3 section 2.6.10.1
    // requires SYNC_FLUSH).
    if (deflated.length < 4 || readUint32(deflated, deflated.length - 4) !== SYNC_FLUSH_TAIL) {
      throw malformed("does not end in a sync flush");
    }
    const plain = this.#inflate(deflated, window);
    this.#window = slide(window, plain);
    return plain;
  }

  #inflate(deflated: Uint8Array, window: Uint8Array): Uint8Array {
    let result: { buffer: Uint8Array; engine: { bytesWritten: number } };
    try {
      // With `info` the result has this shape, which @types/node omits.
      result = inflateRawSync(deflated, {
        dictionary: window,
        finishFlush: constants.Z_SYNC_FLUSH,
        maxOutputLength: this.#maxHeaderBlockBytes,
        chunkSize: INFLATE_CHUNK_BYTES,
        info: true,
      }) as unknown as typeof result;
    } catch (error) {
      if ((error as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE") {
        throw new ProtocolError(
          "header-block-too-large",
          `a header block inflates to more than ${this.#maxHeaderBlockBytes} bytes`,
        );
      }
      throw malformed("does not inflate");
    }
    if (result.engine.bytesWritten !== deflated.length)
      throw malformed("goes on after the end of its deflate stream");
    return result.buffer;
  }
}

function startOf(block: Uint8Array): Uint8Array {
  if (block.length < ZLIB_HEADER_BYTES) throw malformed("has no zlib header");
  const header = readUint16(block, 0);
  const isDeflate = (header & 0x0f00) === 0x0800 && header >>> 12 <= 7 && header % 31 === 0;
  const hasDictionary = (header & 0x0020) !== 0;
  if (!isDeflate || !hasDictionary || readUint32(block, 2) !== HEADER_DICTIONARY_ID) {
    throw malformed("has another zlib header than SPDY/3's");
  }
  return HEADER_DICTIONARY;
}

function slide(window: Uint8Array, plain: Uint8Array): Uint8Array {
  if (plain.length === 0) return window;
  const kept = window.subarray(Math.max(0, window.length + plain.length - WINDOW_BYTES));
  const added = plain.subarray(Math.max(0, plain.length - WINDOW_BYTES));
  const next = new Uint8Array(kept.length + added.length);
  next.set(kept);
  next.set(added, kept.length);
  return next;
}

function malformed(what: string): ProtocolError {
  return new ProtocolError("malformed-header-block", `a header block ${what}`);
}

const MAX_STORED_BYTES = 0xffff;
const STORED_HEADER_BYTES = 5;
/** CMF and FLG with FDICT set, then the DICTID: Go and zlib send this at the best compression. */
const ZLIB_HEADER = Uint8Array.of(0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2);
/** An empty stored block. Go's inflater needs one to return the text before it. */
const SYNC_FLUSH = Uint8Array.of(0x00, 0x00, 0x00, 0xff, 0xff);
/** The block of every SYN_REPLY: a header count of 0. */
const EMPTY_BLOCK = store(Uint8Array.of(0, 0, 0, 0));

/**
 * Encodes one direction's header blocks as stored (uncompressed) deflate blocks, which any inflater
 * reads and which need no window. A real deflater would cost 600 KiB, and 30 us per block to save
 * some twenty bytes per stream.
 */
export class HeaderCompressor {
  #isFirst = true;

  /** Send blocks in the order of compression: the first carries the zlib header. */
  compress(plain: Uint8Array): Uint8Array {
    return this.#withZlibHeaderOnce(store(plain));
  }

  /** A block without headers; the process builds it once. */
  compressEmpty(): Uint8Array {
    return this.#withZlibHeaderOnce(EMPTY_BLOCK);
  }

  #withZlibHeaderOnce(stored: Uint8Array): Uint8Array {
    if (!this.#isFirst) return stored;
    this.#isFirst = false;
    return concat([ZLIB_HEADER, stored]);
  }
}

function store(plain: Uint8Array): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (let offset = 0; offset < plain.length; offset += MAX_STORED_BYTES) {
    const piece = plain.subarray(offset, offset + MAX_STORED_BYTES);
    pieces.push(storedHeader(piece.length), piece);
  }
  return concat([...pieces, SYNC_FLUSH]);
}

/** BFINAL 0 and BTYPE 00, then LEN and its complement, least significant byte first (RFC 1951 section 3.2.4). */
function storedHeader(pieceBytes: number): Uint8Array {
  const header = new Uint8Array(STORED_HEADER_BYTES);
  header[1] = pieceBytes;
  header[2] = pieceBytes >>> 8;
  header[3] = ~pieceBytes;
  header[4] = ~pieceBytes >>> 8;
  return header;
}

function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let offset = 0;
  for (const piece of pieces) {
    whole.set(piece, offset);
    offset += piece.length;
  }
  return whole;
}
