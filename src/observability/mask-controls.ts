/**
 * Formats a value as JSON that no terminal acts on: JSON itself escapes neither DEL nor C1. One
 * line, without `indent`.
 */
export function quietJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, undefined, indent).replace(
    /[\x7f-\x9f]/g,
    (control) => `\\u00${control.charCodeAt(0).toString(16)}`,
  );
}

/**
 * Makes another machine's text safe for a terminal: no escape sequences, and only tabs and new
 * lines move the cursor.
 */
export function maskControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "\u{fffd}");
}
