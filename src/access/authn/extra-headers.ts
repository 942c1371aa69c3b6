/**
 * Keys of a user's extra in headers; no identity provider sends as many. Past it further keys are
 * ignored.
 */
const MAX_EXTRA_KEYS = 100;

/**
 * A user's extra values from headers with one of the prefixes; the rest of the name, in lower case
 * and percent-decoded, is the key. For front proxies and Impersonate-Extra-.
 */
export function extraOf(
  headers: readonly (readonly [string, string])[],
  prefixes: readonly string[],
): Record<string, readonly string[]> {
  const extra = new Map<string, string[]>();
  for (const prefix of prefixes) {
    const wanted = prefix.toLowerCase();
    for (const [name, value] of headers) {
      const lower = name.toLowerCase();
      if (!lower.startsWith(wanted)) continue;
      const key = unescapeKey(lower.slice(wanted.length));
      const values = extra.get(key);
      const text = headerText(value);
      if (values !== undefined) values.push(text);
      else if (extra.size < MAX_EXTRA_KEYS) extra.set(key, [text]);
    }
  }
  // fromEntries makes every name, even `__proto__`, an ordinary key.
  return Object.fromEntries(extra);
}

/**
 * Header names cannot contain every character of a key, so keys are escaped. Malformed escapes stay
 * unchanged, as in kube-apiserver.
 */
function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

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
