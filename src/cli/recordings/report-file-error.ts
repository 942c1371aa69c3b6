import { maskControls } from "../../observability/mask-controls.ts";
import { FORMAT, formatOf } from "../../recording/format/asciicast.ts";
import { RecordingFileError } from "../../recording/reading/recording-file-error.ts";
import { firstLineOf } from "../../recording/reading/recording-lines.ts";

/**
 * Runs a command on recordings. If a file is not a readable recording, prints one line and returns
 * exit code 1.
 */
export async function reportingFileErrors(name: string, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof RecordingFileError)) throw error;
    process.stderr.write(`sluice ${name}: ${maskControls(error.message)}\n`);
    return 1;
  }
}

/** Warns on standard error of a recording whose format is newer than this program's. */
export async function warnOfNewerFormat(file: string): Promise<void> {
  const problem = await newerFormatOf(file);
  if (problem !== undefined)
    process.stderr.write(maskControls(`warning: ${problem}: some of it may not be shown\n`));
}

/** The problem for users; undefined if this program reads the format, or cannot read the file. */
export async function newerFormatOf(file: string): Promise<string | undefined> {
  const format = formatOf(await firstLineOf(file).catch(() => ""));
  return format > FORMAT ? `${file} has format ${format}, and this program reads ${FORMAT}` : undefined;
}
