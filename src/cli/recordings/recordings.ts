import type { KeyObject } from "node:crypto";
import path from "node:path";
import { suggestion } from "@sluice/client/internal/config/nearest-name";
import { maskControls, quietJson } from "../../observability/mask-controls.ts";
import { findRecording, findRecordings } from "../../recording/reading/find-recordings.ts";
import { headerOf, readRecording } from "../../recording/reading/read-recording.ts";
import { RecordingFileError } from "../../recording/reading/recording-file-error.ts";
import { firstLineOf } from "../../recording/reading/recording-lines.ts";
import { readPublicKeys, verifyRecording } from "../../recording/reading/verify-recording.ts";
import { deleteRecording } from "../../recording/storage/delete-recording.ts";
import { type Invocation, UsageError } from "../command.ts";
import { command } from "../commands/recordings.ts";
import { refuseIgnored } from "../flag-readers.ts";
import { printYaml } from "../print-text.ts";
import { exportRecording } from "./export-recording.ts";
import { reportingFileErrors, warnOfNewerFormat } from "./report-file-error.ts";

type RecordingSummary = Awaited<ReturnType<typeof readRecording>>;
type Values = Invocation<typeof command.flags>["values"];

/** Runs one action on recordings. Exit code 1 if one does not verify. */
export function run(invocation: Invocation<typeof command.flags>): Promise<number> {
  return reportingFileErrors("recordings", () => runAction(invocation));
}

const OF_EXPORT = ["format", "stream", "redact", "redact-command"] as const;
/** The flags that have no effect on this action, among those that are not at their defaults. */
const IGNORED = {
  list: ["key", ...OF_EXPORT],
  show: ["key", ...OF_EXPORT],
  verify: ["output", ...OF_EXPORT],
  export: ["key", "output"],
  delete: ["key", "output", ...OF_EXPORT],
} as const;

async function runAction({ values, operands }: Invocation<typeof command.flags>): Promise<number> {
  const [action = "", ...names] = operands;
  if (Object.hasOwn(IGNORED, action)) {
    const given = IGNORED[action as keyof typeof IGNORED].filter((name) => !isDefault(values, name));
    refuseIgnored(values, `sluice recordings ${action}`, given);
  }
  switch (action) {
    case "list":
      if (names.length > 0) throw new UsageError("list takes no operand but --folder");
      return await list(values);
    case "verify":
      return await verify(names, values);
    case "show":
      return await show(names, values);
    case "export":
      return await exportRecording(await one(names, values), values);
    case "delete":
      return await remove(names, values);
    default:
      if (action !== "")
        throw new UsageError(
          `unknown action ${JSON.stringify(action)}${suggestion(action, Object.keys(IGNORED))}`,
        );
      throw new UsageError("the first operand must be list, show, verify, export or delete", {
        showsUsage: true,
      });
  }
}

function isDefault(values: Values, name: (typeof IGNORED)[keyof typeof IGNORED][number]): boolean {
  const flag = command.flags[name];
  return "default" in flag && values[name] === flag.default;
}

async function one(names: readonly string[], { folder }: Values): Promise<string> {
  const [name] = names;
  if (name === undefined || names.length > 1)
    throw new UsageError("name one recording", { showsUsage: true });
  return await findRecording(folder, name);
}

function requireFolder({ folder }: Values): string {
  if (folder === undefined) throw new UsageError("--folder is required here");
  return folder;
}

async function list(values: Values): Promise<number> {
  const found: (readonly [file: string, summary: RecordingSummary])[] = [];
  for (const file of await findRecordings(requireFolder(values))) {
    try {
      found.push([file, await readRecording(file)]);
    } catch (error) {
      if (!(error instanceof RecordingFileError)) throw error;
      process.stderr.write(`${maskControls(error.message)}\n`);
    }
  }
  const startOf = ({ header }: RecordingSummary): string => header.sluice?.startedAt ?? "";
  found.sort(([, one], [, other]) => (startOf(one) < startOf(other) ? -1 : 1));
  const { output } = values;
  if (output === "json")
    process.stdout.write(found.map((each) => `${quietJson(objectOf(...each))}\n`).join(""));
  else if (output === "yaml") await printDocuments(found.map((each) => objectOf(...each)));
  else if (output === "name")
    process.stdout.write(found.map(([, { header }]) => `${maskControls(idOf(header))}\n`).join(""));
  else if (found.length === 0)
    process.stderr.write(`No recordings found in ${maskControls(requireFolder(values))}.\n`);
  else {
    const isWide = output === "wide";
    const rows = found.map(([file, summary]) => [
      ...rowOf(summary),
      ...(isWide ? moreOf(file, summary) : []),
    ]);
    process.stdout.write(tableOf([[...COLUMNS, ...(isWide ? WIDE_COLUMNS : [])], ...rows]));
  }
  return 0;
}

/** As `kubectl get -o yaml` separates documents. */
async function printDocuments(objects: readonly object[]): Promise<void> {
  for (const [index, object] of objects.entries()) {
    if (index > 0) process.stdout.write("---\n");
    await printYaml(object);
  }
}

const COLUMNS = ["STARTED", "SECONDS", "USER", "SESSION", "COMMAND", "END", "ID"];
const WIDE_COLUMNS = ["CONTAINER", "NODE", "RULE", "BYTES", "GAPS", "FILE"];

const idOf = ({ sluice }: RecordingSummary["header"]): string => sluice?.session ?? "";

function rowOf({ header, seconds, exitCode, head }: RecordingSummary): string[] {
  const { sluice: facts } = header;
  const { startedAt = "", user = "", subresource = "", namespace = "", pod = "" } = facts ?? {};
  const end = head === undefined ? "unfinished" : exitCode === undefined ? head.end : `exit ${exitCode}`;
  const command = (facts?.command ?? []).join(" ").slice(0, 40);
  const session = `${subresource} ${namespace}/${pod}`;
  return [startedAt, seconds.toFixed(1), user, session, command, end, idOf(header)];
}

function moreOf(file: string, { header, head }: RecordingSummary): string[] {
  const { container = "", node = "", rule = "" } = header.sluice ?? {};
  return [container, node, rule, String(head?.bytes ?? ""), String(head?.gaps ?? ""), file];
}

function objectOf(file: string, { header, seconds, exitCode, head }: RecordingSummary): object {
  return { file, ...header.sluice, seconds: Number(seconds.toFixed(3)), exitCode, head };
}

function tableOf(rows: readonly string[][]): string {
  const widths = (rows[0] as string[]).map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, (row[column] ?? "").length), 0),
  );
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, index) => maskControls(cell).padEnd(widths[index] as number))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

async function show(names: readonly string[], values: Values): Promise<number> {
  const { output } = values;
  if (output === "wide" || output === "name")
    throw new UsageError(`--output ${output} does not apply to sluice recordings show`);
  const file = await one(names, values);
  const onHeader = (line: string): void => warnOfNewerFormat(line, file);
  const object = objectOf(file, await readRecording(file, { onHeader }));
  if (output === "json") process.stdout.write(`${quietJson(object)}\n`);
  else if (output === "yaml") await printYaml(object);
  else
    for (const [name, value] of Object.entries(object))
      if (value !== undefined)
        process.stdout.write(
          `${name}: ${typeof value === "string" ? maskControls(value) : quietJson(value)}\n`,
        );
  return 0;
}

/** With a folder, all of its recordings, or those with these ids. */
async function verify(names: readonly string[], { folder, key }: Values): Promise<number> {
  const places = names.length === 0 && folder !== undefined ? [folder] : names;
  if (places.length === 0) throw new UsageError("name a recording, or a folder", { showsUsage: true });
  let count = 0;
  const code = await forEach(places, async (place) => {
    let worst = 0;
    for (const file of await findRecordings(places === names ? await findRecording(folder, place) : place)) {
      count += 1;
      const keys = await readPublicKeys(key, key.length > 0 ? undefined : folderOf(file));
      const { verdict, text } = await verifiedLine(file, keys);
      if (verdict !== "unchanged") worst = 1;
      process.stdout.write(`${maskControls(file)}: ${maskControls(text)}\n`);
    }
    return worst;
  });
  if (count === 0 && code === 0) throw new RecordingFileError("no recording was found");
  return code;
}

/** Runs an action on each name, and on the others if one cannot be read. Returns the highest exit code. */
async function forEach(names: readonly string[], action: (name: string) => Promise<number>): Promise<number> {
  let code = 0;
  for (const name of names)
    code = Math.max(code, await reportingFileErrors("recordings", () => action(name)));
  return code;
}

/** A file that cannot be read does not end the check of the others. */
async function verifiedLine(file: string, keys: readonly KeyObject[]): Promise<VerifiedLine> {
  try {
    const { verdict, chunk, problem, redacted, isHeaderRedacted } = await verifyRecording(file, keys);
    const where = verdict === "changed" ? ` at chunk ${chunk}` : "";
    const what = problem === undefined ? "" : `: ${problem}`;
    const header = isHeaderRedacted ? "; of the header only session and start are proven" : "";
    const less = redacted > 0 ? ` (${redacted} lines are redacted${header})` : "";
    return { verdict, text: `${verdict}${where}${what}${less}` };
  } catch (error) {
    if (!(error instanceof RecordingFileError)) throw error;
    return { verdict: "unreadable", text: `unreadable: ${error.message}` };
  }
}

interface VerifiedLine {
  readonly verdict: string;
  readonly text: string;
}

/**
 * Deletes recordings. A line in `deleted.jsonl` distinguishes a deleted recording from one that
 * vanished.
 */
async function remove(names: readonly string[], values: Values): Promise<number> {
  const folder = requireFolder(values);
  if (names.length === 0) throw new UsageError("name the recordings by their ids");
  if (names.some((name) => name.endsWith(".cast"))) throw new UsageError("name the recordings by their ids");
  return await forEach(names, async (name) => {
    const file = await findRecording(folder, name);
    // Users' own casts may have any name.
    const { sluice } = headerOf(await firstLineOf(file), file);
    if (sluice === undefined) throw new RecordingFileError(`${file} is not a recording of Sluice`);
    await deleteRecording(folder, file, "command");
    process.stdout.write(`${maskControls(name)} is deleted\n`);
    return 0;
  });
}

/** The root folder of a recording, which also has the keys: `FOLDER` of `FOLDER/2026/11/22/ID.cast`. */
function folderOf(file: string): string {
  return path.resolve(path.dirname(file), "../../..");
}
