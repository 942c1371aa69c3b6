import type { KeyObject } from "node:crypto";
import { constants } from "node:fs";
import { link, lstat, open, rename, rm, unlink } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import {
  EventLines,
  FORMAT,
  formatOf,
  parseEvent,
  parseHeader,
  type RecordedHeader,
} from "../format/asciicast.ts";
import { COMMENT, LineChain, seedLine } from "../format/chain.ts";
import { headLine, keyNameOf } from "../format/signed-head.ts";
import { filesBelow } from "../reading/find-recordings.ts";
import { firstLineOf, readLines } from "../reading/recording-lines.ts";
import { type Disk, systemDisk } from "./disk.ts";
import { partOf } from "./recording-file.ts";
import { isWriterAlive, removeLeftLeases } from "./writer-lease.ts";

/**
 * Finishes unfinished recordings of dead writers, and calls `onOutcome` for each. Skips those that
 * fail. Rejects at the end if leases or reserved space could not be removed.
 */
export async function finishLeftParts(
  folder: string,
  writer: string,
  key: KeyObject,
  onOutcome: (outcome: PartOutcome, file: string) => void,
  disk: Pick<Disk, "syncNames" | "write" | "truncate"> = systemDisk,
): Promise<void> {
  // Frees reserved space first, because the disk may be full.
  const problem = removeLeftLeases(folder);
  const names = (await filesBelow(folder)).map((file) => path.relative(folder, file));
  for (const name of names) {
    const { file, writer: owner } = writerOf(name) ?? {};
    if (file === undefined || owner === undefined || owner === writer || isWriterAlive(folder, owner))
      continue;
    const target = path.join(folder, file);
    const claimed = partOf(target, writer);
    const [, code] = LEFT.exec(owner) ?? [];
    try {
      // A recording of a newer format is left to a newer version.
      if (formatOf(await firstLineOf(path.join(folder, name))) > FORMAT) continue;
      // If several processes try, one succeeds.
      await rename(path.join(folder, name), claimed);
      const outcome = await finishPart(claimed, target, { key, code, disk });
      await promisify(disk.syncNames)(target);
      onOutcome(outcome, file);
    } catch {
      // The next search tries again; it leaves alone what has the name of a living writer.
      await rename(claimed, partOf(target, undefined, code)).catch(() => {});
    }
  }
  if (problem !== undefined) throw problem;
}

/** Replaces the writer in a file's name if the disk refused the last lines: the code, and an id. */
const LEFT = /^([A-Z0-9]+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
/** The end of a recording whose last lines the disk refused. */
const WRITE_FAILED = "write-failed";

/**
 * What happened to an unfinished recording: it was finished, was empty and removed, or was changed and
 * set aside.
 */
export type PartOutcome = "finished" | "empty" | "set-aside";

interface Finishing {
  readonly key: KeyObject;
  /** The disk's code, if it refused the recording's last lines. */
  readonly code: string | undefined;
  readonly disk: Pick<Disk, "write" | "truncate">;
}

/**
 * Finishes a dead writer's `part` as `file`: removes a partly written line, and signs the rest with the
 * end `crash`, or with WRITE_FAILED if the disk refused lines with this code.
 */
async function finishPart(part: string, file: string, { key, code, disk }: Finishing): Promise<PartOutcome> {
  const reading = new PartReading();
  const rest = await readLines(part, (line) => reading.line(line));
  const { size, mtimeMs } = await lstat(part);
  if (size === rest.byteLength && reading.isEmpty) {
    await rm(part);
    return "empty";
  }
  const end = reading.end(Math.floor(mtimeMs), key, code);
  if (end === undefined) {
    await rename(part, `${file}.changed`);
    return "set-aside";
  }
  const handle = await open(part, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const position = size - rest.byteLength;
    disk.truncate(handle.fd, position);
    try {
      disk.write(handle.fd, Buffer.from(end, "utf8"), position);
    } catch (error) {
      // The next search would read a partial end as lines of the session.
      disk.truncate(handle.fd, position);
      throw error;
    }
    await handle.datasync();
  } finally {
    await handle.close();
  }
  await nameFinally(part, file);
  return "finished";
}

/** Unlike rename, replaces no file. A writer that died between link and unlink left both names. */
async function nameFinally(part: string, file: string): Promise<void> {
  await link(part, file).catch(async (error: NodeJS.ErrnoException) => {
    const [own, other] = error.code === "EEXIST" ? await Promise.all([lstat(part), lstat(file)]) : [];
    if (own === undefined || own.ino !== other?.ino || own.dev !== other.dev) throw error;
  });
  await unlink(part);
}

/** Reads an unfinished recording, and writes the last lines that continue its chain. */
class PartReading {
  #headerText: string | undefined;
  #header: RecordedHeader | undefined;
  #chain: LineChain | undefined;
  #isChanged = false;
  #bytes = 0;
  #lastOutputBytes = 0;
  #gaps = 0;
  #passedMs = 0;
  #hasEnd = false;

  get isEmpty(): boolean {
    return this.#headerText === undefined;
  }

  line(bytes: Buffer): void {
    const line = bytes.toString("utf8");
    if (this.#headerText === undefined) {
      this.#headerText = line;
      this.#header = parseHeader(line);
    } else if (this.#chain === undefined) this.#begin(line, this.#headerText);
    else if (line.startsWith(COMMENT)) this.#comment(line, this.#chain);
    else {
      this.#chain.add(line);
      this.#count(line);
    }
  }

  /** The lines to append; "" if only the final name is missing. Undefined if the recording was changed. */
  end(atMs: number, key: KeyObject, code: string | undefined): string | undefined {
    const facts = this.#header?.sluice;
    const chain = this.#chain;
    if (this.#isChanged || chain === undefined || facts === undefined) return undefined;
    if (this.#hasEnd) return "";
    const end = code === undefined ? "crash" : WRITE_FAILED;
    const mark = new EventLines().line(0, "m", `ended: ${end}${code === undefined ? "" : `: ${code}`}`);
    chain.add(mark);
    const chunk = chain.close(atMs);
    const head = {
      bytes: this.#bytes,
      chunks: chain.chunks,
      end,
      // The last event is the last thing that is known. The file's own time may be that of a copy.
      endedAt: new Date(Date.parse(facts.startedAt) + this.#passedMs).toISOString(),
      gaps: this.#gaps,
      hash: chain.hash,
      key: keyNameOf(key),
      lines: chain.lines,
      session: facts.session,
      startedAt: facts.startedAt,
    };
    return `${mark}\n${chunk}\n${headLine(head, key)}\n`;
  }

  #begin(line: string, header: string): void {
    const seed = commentOf(line).seed;
    const bytes = Buffer.from(typeof seed === "string" ? seed : "", "base64");
    this.#isChanged = line !== seedLine(bytes);
    this.#chain = new LineChain(bytes);
    this.#chain.begin(header);
  }

  #comment(line: string, chain: LineChain): void {
    const { at, head } = commentOf(line);
    if (head !== undefined) {
      this.#hasEnd = true;
      return;
    }
    const atMs = Date.parse(String(at));
    if (!Number.isFinite(atMs) || chain.close(atMs) !== line) this.#isChanged = true;
  }

  #count(line: string): void {
    const { interval = 0, code, data } = parseEvent(line) ?? {};
    this.#passedMs += Math.round(interval * 1_000);
    if (code === "o") {
      this.#lastOutputBytes = Buffer.byteLength(data ?? "", "utf8");
      this.#bytes += this.#lastOutputBytes;
    } else if (code === "b")
      this.#bytes += Buffer.from(data ?? "", "base64").byteLength - this.#lastOutputBytes;
    else if (code === "g" || code === "d") this.#bytes += Number(commentOf(COMMENT + data).bytes);
    if (code === "g") this.#gaps += 1;
  }
}

function commentOf(line: string): Readonly<Record<string, unknown>> {
  try {
    const comment: unknown = JSON.parse(line.slice(COMMENT.length));
    return typeof comment === "object" && comment !== null ? (comment as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The recording and writer that an unfinished recording's name contains; undefined for another name. */
function writerOf(part: string): { readonly file: string; readonly writer: string } | undefined {
  const [, file, writer] = /^(.+\.cast)\.([\w-]+)\.part$/.exec(part) ?? [];
  return file === undefined || writer === undefined ? undefined : { file, writer };
}
