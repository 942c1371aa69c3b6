/** A warning on a line of its own, for the user of a terminal. */
export function terminalWarning(message: string): Uint8Array {
  return new TextEncoder().encode(`\r\nsluice: ${message}\r\n`);
}
