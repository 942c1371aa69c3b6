/** Of a line, or of a message, in an error. */
export const MAX_QUOTED_CHARACTERS = 100;

/** The value of a field that holds a secret, and anything that may be one. */
const CREDENTIAL = /((?:token|password|secret|data|key)["']?\s*:\s*).*|[\w+/=.-]{32,}/i;

/** The line that begins at `start`, for an error: without secrets, and without what a terminal would obey. */
export function quotedLine(text: string, start: number): string {
  const end = text.indexOf("\n", start);
  const line = text.slice(start, end === -1 ? undefined : end).trim();
  return JSON.stringify(
    line.slice(0, MAX_LINE_CHARACTERS).replace(CREDENTIAL, "$1…").slice(0, MAX_QUOTED_CHARACTERS),
  );
}

/** Looked at for secrets. */
const MAX_LINE_CHARACTERS = 1_000;
