/**
 * The text of a header value: Node.js gives each byte as one character, Kubernetes' clients send UTF-8. What is no UTF-8 stays as it is, so
 * that two different values never become one name.
 */
export function headerText(value: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(value, "latin1"));
  } catch {
    return value;
  }
}
