import { maskControls } from "../observability/mask-controls.ts";

/**
 * Prints on standard output. Masks control characters, so that names from servers and manifests
 * cannot act on the terminal.
 */
export function printText(text: string): void {
  process.stdout.write(coloured(maskControls(text), process.stdout));
}

/** Prints a value as one document of YAML, without control characters. */
export async function printYaml(value: unknown): Promise<void> {
  const { yamlOf } = await import("@sluice/client/internal/config/kubernetes-yaml");
  process.stdout.write(maskControls(yamlOf(value)));
}

/** Verdicts that begin a line or a cell, or follow what they are about: green, red and yellow ones. */
const VERDICTS =
  /(^| {2}|: )(?:(allowed|ok|pass|Success)|(refused with \d{3}|FAIL(?:ED)?|Failure)|(no verdict|Warning|Unknown))(?=[:, ]|$)/gm;

/**
 * Colours the verdicts in a text. Leaves it as it is if the stream is no terminal that has colours,
 * or the user wants none (no-color.org).
 */
export function coloured(
  text: string,
  { isTTY = false }: { readonly isTTY?: boolean },
  { NO_COLOR = "", TERM = "dumb" }: NodeJS.ProcessEnv = process.env,
): string {
  if (!isTTY || NO_COLOR !== "" || TERM === "dumb") return text;
  return text.replace(VERDICTS, (_, before: string, green?: string, red?: string, yellow?: string) => {
    const code = green !== undefined ? 32 : red !== undefined ? 31 : 33;
    return `${before}\u001b[${code}m${green ?? red ?? yellow}\u001b[0m`;
  });
}

/** A word, quoted for a shell if necessary. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
