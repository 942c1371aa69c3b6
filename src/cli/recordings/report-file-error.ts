import { maskControls } from "../../observability/mask-controls.ts";
import { FORMAT, formatOf } from "../../recording/format/asciicast.ts";
import { RecordingFileError } from "../../recording/reading/recording-file-error.ts";

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

/**
 * Warns on standard error of a recording whose format, by its first line, is newer than this
 * program's; throws RecordingFileError instead if the caller refuses it.
 */
export function warnOfNewerFormat(header: string, file: string, refuses = false): void {
  const format = formatOf(header);
  if (format <= FORMAT) return;
  const problem = `${file} has format ${format}, and this program reads ${FORMAT}`;
  if (refuses) throw new RecordingFileError(problem);
  process.stderr.write(maskControls(`warning: ${problem}: some of it may not be shown\n`));
}
