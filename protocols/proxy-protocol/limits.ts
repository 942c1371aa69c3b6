/** The longest version 1 line that the specification allows, with its CRLF (section 2.1). */
export const MAX_PROXY_LINE_BYTES = 107;

/**
 * A version 2 header with its TLVs; its length field would allow 65,551 bytes. A client certificate
 * in a TLV takes up to 4 KiB.
 */
export const MAX_PROXY_HEADER_BYTES = 16 * 1024;
