import { maskControls } from "../observability/mask-controls.ts";

/** Prints on standard output; names from servers and manifests cannot act on the terminal. */
export function printText(text: string): void {
  process.stdout.write(maskControls(text));
}

/** A word as a shell reads it. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
