import { maskControls } from "../../observability/mask-controls.ts";
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
