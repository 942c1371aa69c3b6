/** A line of version 1 with its CRLF: the longest that the specification allows (section 2.1). */
export const MAX_PROXY_LINE_BYTES = 107;

/** A header of version 2 with its TLVs, of up to 65,551 bytes by its length field. A client's certificate in one of them has up to 4 KiB. */
export const MAX_PROXY_HEADER_BYTES = 16 * 1024;
