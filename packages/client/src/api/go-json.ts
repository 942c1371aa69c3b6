const goEscapes: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
};

/**
 * Formats JSON as Go's encoder does, with HTML characters and line separators escaped, so that
 * answers match byte for byte.
 */
export function goJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => goEscapes[character] ?? character,
  );
}

/**
 * Formats a string as Go's `%q`, with which the API server quotes names and bad values in messages.
 */
export function goQuote(text: string): string {
  // JSON and Go differ only in some controls that Go writes shorter, and in DEL. Matches pairs of
  // backslashes only to skip them.
  return JSON.stringify(text).replace(
    /\\\\|\\u00([01][0-9a-f])|\u007f/g,
    (whole, hex: string | undefined) => {
      if (whole === "\u007f") return "\\x7f";
      if (hex === undefined) return whole;
      return shortEscapes[hex] ?? `\\x${hex}`;
    },
  );
}

const shortEscapes: Readonly<Record<string, string>> = { "07": "\\a", "0b": "\\v" };
