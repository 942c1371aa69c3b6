/**
 * Decodes a header value: Node.js turns each byte into a character, Kubernetes' clients send UTF-8.
 * Invalid UTF-8 stays unchanged, so that two different values never become one name.
 */
export function headerText(value: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(value, "latin1"));
  } catch {
    return value;
  }
}
