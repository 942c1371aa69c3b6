/** Text of another machine as a terminal may have it: no escape sequence, nothing that moves the cursor but tabs and new lines. */
export function maskControls(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
  return text.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "\u{fffd}");
}
