import type { KeyObject } from "node:crypto";
import { rename } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { FORMAT, formatOf } from "../format/asciicast.ts";
import { filesBelow } from "../reading/find-recordings.ts";
import { firstLineOf } from "../reading/recording-lines.ts";
import { type Disk, systemDisk } from "./disk.ts";
import { finishPart, type PartOutcome } from "./finish-part.ts";
import { partOf, writerOf } from "./recording-file.ts";
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
  disk: Pick<Disk, "syncNames"> = systemDisk,
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
    try {
      // A recording of a newer format is left to a newer version.
      if (formatOf(await firstLineOf(path.join(folder, name))) > FORMAT) continue;
      // If several processes try, one succeeds.
      await rename(path.join(folder, name), claimed);
      const outcome = await finishPart(claimed, target, key);
      await promisify(disk.syncNames)(target);
      onOutcome(outcome, file);
    } catch {
      // The next search tries again; once the part has this writer's name, the next start does.
    }
  }
  if (problem !== undefined) throw problem;
}
