import { readFile, stat } from "node:fs/promises";
import {
  HTTP_METRICS,
  type HttpLoadReport,
  type LoadReport,
  mergeHttpReports,
  mergeReports,
  missingParts,
  type NamedReport,
  readPlots,
  readReports,
  SESSION_METRICS,
} from "@sluice/lab/load";
import { UsageError } from "../command.ts";
import type { LoadValues } from "../commands/load.ts";
import { publish, publishHttp, thresholdsOf } from "./load-result.ts";

/**
 * A file of reports for `sluice load merge`: some 300 parts of ten minutes each. Past it: exit code
 * 2.
 */
const MAX_FILE_BYTES = 256 * 1024 * 1024;

/** Merges the reports of parts that ran side by side. Throws UsageError, naming files. */
export async function runMerge(values: LoadValues, files: readonly string[]): Promise<number> {
  const named: NamedReport[] = [];
  for (const file of files) named.push(...(await readNamed(file)));
  const [first, ...others] = named;
  if (first === undefined) throw new UsageError("merge takes one FILE or more");
  return first.report.kind === "HttpLoadReport"
    ? await mergeHttp([first as HttpNamed, ...sameKind<HttpNamed>(first, others)], values)
    : await mergeSessions([first as SessionsNamed, ...sameKind<SessionsNamed>(first, others)], values);
}

type HttpNamed = NamedReport<HttpLoadReport>;
type SessionsNamed = NamedReport<LoadReport>;

async function mergeSessions(
  reports: readonly [SessionsNamed, ...SessionsNamed[]],
  values: LoadValues,
): Promise<number> {
  const thresholds = thresholdsOf(values, SESSION_METRICS);
  if (values.html !== undefined) await readPlots();
  const merged = refusing(() => mergeReports(reports));
  return verdict(merged, await publish(merged, thresholds, values));
}

async function mergeHttp(reports: readonly [HttpNamed, ...HttpNamed[]], values: LoadValues): Promise<number> {
  const thresholds = thresholdsOf(values, HTTP_METRICS);
  const merged = refusing(() => mergeHttpReports(reports));
  return verdict(merged, await publishHttp(merged, thresholds, values));
}

/** Without all parts there is no verdict. */
function verdict(merged: LoadReport | HttpLoadReport, code: number): number {
  return missingParts(merged).length > 0 ? 1 : code;
}

function sameKind<N extends NamedReport>(first: NamedReport, others: readonly NamedReport[]): N[] {
  const other = others.find(({ report }) => report.kind !== first.report.kind);
  if (other === undefined) return others as N[];
  throw new UsageError(
    `${other.name}: it is a ${other.report.kind}, but ${first.name} is a ${first.report.kind}`,
  );
}

function refusing<T>(merge: () => T): T {
  try {
    return merge();
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
