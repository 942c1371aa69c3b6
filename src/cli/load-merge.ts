import { readFile, stat } from "node:fs/promises";
import {
  mergeReports,
  missingParts,
  type NamedReport,
  readPlots,
  readReports,
  SESSION_METRICS,
} from "../load/index.ts";
import type { LoadValues } from "./commands/load.ts";
import { publish, thresholdsOf } from "./load-result.ts";
import { UsageError } from "./usage-error.ts";

/** Some 300 parts of ten minutes each in one log. */
const MAX_FILE_BYTES = 256 * 1024 * 1024;

/** Adds up the reports of parts that ran side by side. Throws UsageError, naming files. */
export async function runMerge(values: LoadValues, files: readonly string[]): Promise<number> {
  const thresholds = thresholdsOf(values, SESSION_METRICS);
  if (values.html !== undefined) await readPlots();
  const named: NamedReport[] = [];
  for (const file of files) named.push(...(await readNamed(file)));
  const [first, ...others] = named;
  if (first === undefined) throw new UsageError("merge takes one FILE or more");
  const merged = mergedOf([first, ...others]);
  const code = await publish(merged, thresholds, values);
  // A verdict on some of the parts is none.
  return missingParts(merged).length > 0 ? 1 : code;
}

function mergedOf(reports: [NamedReport, ...NamedReport[]]): ReturnType<typeof mergeReports> {
  try {
    return mergeReports(reports);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

async function readNamed(file: string): Promise<NamedReport[]> {
  const name = file === "-" ? "standard input" : file;
  try {
    const reports = readReports(file === "-" ? await readInput() : await readBounded(file));
    return reports.map((report, index) => ({
      name: reports.length === 1 ? name : `${name}, report ${index + 1}`,
      report,
    }));
  } catch (error) {
    throw new UsageError(`${name}: ${(error as Error).message}`);
  }
}

async function readBounded(file: string): Promise<string> {
  const { size } = await stat(file);
  if (size > MAX_FILE_BYTES) throw new RangeError(tooLarge());
  return readFile(file, "utf8");
}

async function readInput(): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of process.stdin as AsyncIterable<Buffer>) {
    bytes += part.byteLength;
    if (bytes > MAX_FILE_BYTES) throw new RangeError(tooLarge());
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}

function tooLarge(): string {
  return `it has more than ${MAX_FILE_BYTES / 1024 / 1024} MiB`;
}
