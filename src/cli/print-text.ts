import { maskControls } from "../observability/mask-controls.ts";
import { endBySignal } from "./termination-signal.ts";

/**
 * Prints on standard output. Masks control characters, so that names from servers and manifests
 * cannot act on the terminal.
 */
export function printText(text: string): void {
  process.stdout.write(coloured(maskControls(text), process.stdout));
}

/**
 * Writes to standard output. Returns a promise if its reader is slow, to await before the next write.
 * If the signal aborts while that reader takes nothing, the program ends as SIGINT ends it.
 */
export function writeOut(text: string | Uint8Array, signal?: AbortSignal): Promise<void> | void {
  const { stdout } = process;
  if (stdout.write(text) || stdout.destroyed) return;
  return new Promise((resolve) => {
    // Unwritten output would keep the program running.
    const end = (): void => process.exit(EXIT_INTERRUPTED);
    if (signal?.aborted) end();
    signal?.addEventListener("abort", end, { once: true });
    stdout.once("drain", () => {
      signal?.removeEventListener("abort", end);
      resolve();
    });
  });
}

/** As shells report a program that SIGINT ended. */
const EXIT_INTERRUPTED = 130;

/**
 * Lends the terminal to foreign output. The returned function takes it back and begins a line, as do
 * SIGTERM and Ctrl-Z. With TERM=dumb no sequences are sent, to a pipe nothing.
 */
export function lendTerminal(undo: string, begin = ""): () => void {
  const { stdout } = process;
  if (!stdout.isTTY) return () => {};
  const isDumb = !takesSequences(stdout, process.env);
  const takeBack = (): void => void stdout.write(isDumb ? "\n" : `${undo}\n`);
  const onTerminate = (signal: NodeJS.Signals): void => {
    takeBack();
    endBySignal(signal);
  };
  // Without a listener, SIGTSTP stops the process, if a shell is there to continue it.
  const onStop = (signal: NodeJS.Signals): void => {
    takeBack();
    process.off("SIGTSTP", onStop);
    process.kill(process.pid, signal);
    process.on("SIGTSTP", onStop);
  };
  process.on("SIGTERM", onTerminate);
  process.on("SIGTSTP", onStop);
  if (begin !== "" && !isDumb) stdout.write(begin);
  return () => {
    process.off("SIGTERM", onTerminate);
    process.off("SIGTSTP", onStop);
    takeBack();
  };
}

function takesSequences(
  { isTTY = false }: { readonly isTTY?: boolean },
  { TERM = "" }: NodeJS.ProcessEnv,
): boolean {
  return isTTY && TERM !== "" && TERM !== "dumb";
}

/** Prints a value as one document of YAML, without control characters. */
export async function printYaml(value: unknown): Promise<void> {
  const { yamlOf } = await import("@sluice/client/internal/config/kubernetes-yaml");
  process.stdout.write(maskControls(yamlOf(value)));
}

/** Verdicts begin a line or a cell, follow what they are about, or are counts above zero. */
const VERDICTS: readonly (readonly [colour: number, pattern: RegExp])[] = [
  [32, /(^| {2}|: |, )(allowed|ok|pass|Success|mended(?= {2})|[1-9]\d* passed)(?=[:, ]|$)/gm],
  [31, /(^| {2}|: |, )(refused with \d{3}|FAIL(?:ED)?|Failure|broken(?= {2})|[1-9]\d* failed)(?=[:, ]|$)/gm],
  [31, /^()([\w/.-]+ \(must\)|NOTHING COULD BE TRIED)$/gm],
  [33, /(^| {2}|: |, )(no verdict|Warning|Unknown|lost(?= {2})|[1-9]\d* skipped)(?=[:, ]|$)/gm],
  [33, /^()([\w/.-]+ \((?:should|info)\)|Not tried at all)$/gm],
];

/**
 * Colours the verdicts in a text. Returns it unchanged if the stream is not a terminal with colours,
 * or if the user does not want colours (no-color.org).
 */
export function coloured(
  text: string,
  stream: { readonly isTTY?: boolean },
  environment: NodeJS.ProcessEnv = process.env,
): string {
  const { NO_COLOR = "" } = environment;
  if (NO_COLOR !== "" || !takesSequences(stream, environment)) return text;
  return VERDICTS.reduce(
    (painted, [colour, pattern]) => painted.replace(pattern, `$1\u001b[${colour}m$2\u001b[0m`),
    text,
  );
}

/** A word, quoted for a shell if necessary. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
