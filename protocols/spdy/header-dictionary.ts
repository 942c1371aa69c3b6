import { writeUint32 } from "../bytes/index.ts";

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
export const HEADER_DICTIONARY_ID = 0xe3c6_a7c2;

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
