import { maskControls } from "../observability/mask-controls.ts";

/**
 * Prints on standard output. Masks control characters, so that names from servers and manifests
 * cannot act on the terminal.
 */
export function printText(text: string): void {
  process.stdout.write(maskControls(text));
}

/** A word, quoted for a shell if necessary. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
