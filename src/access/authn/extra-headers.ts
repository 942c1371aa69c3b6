import { headerText } from "./header-text.ts";

/** More keys than any identity provider sends; a bound for what is carried along with every request. */
const MAX_EXTRA_KEYS = 100;

/**
 * A user's extra values from headers with one of the prefixes; the key is the rest of the name, in lower case and percent-decoded. For
 * front proxies and Impersonate-Extra-.
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
  // Built from entries: a key such as __proto__ must be an ordinary one.
  return Object.fromEntries(extra);
}

/** Header names cannot hold every character of a key; an ill-formed escape is kept as it is, as in kube-apiserver. */
function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
