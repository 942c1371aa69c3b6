import type { FileReading, ManifestFile, ReadItem } from "./manifests.ts";

interface KeptFile {
  readonly text: string;
  readonly reading: FileReading;
}

/**
 * What the last reading made of each file, so that a reload decodes only objects that changed. Costs the
 * memory of the files' texts.
 */
export class ManifestMemory {
  #files: ReadonlyMap<string, KeptFile> = new Map();

  /** The files whose text is not the one that was read last. */
  changedOf(files: readonly ManifestFile[]): readonly ManifestFile[] {
    return files.filter(({ name, text }) => this.#files.get(name)?.text !== text);
  }

  /** The items of the given files as they were read last, by digest. */
  knownOf(files: readonly ManifestFile[]): ReadonlyMap<string, ReadItem> {
    const known = new Map<string, ReadItem>();
    for (const { name } of files) {
      for (const { digest, object, warnings } of this.#files.get(name)?.reading.found ?? [])
        known.set(digest, { object, warnings });
    }
    return known;
  }

  /** Keeps the readings of changed files, and forgets files that are gone. Returns all, in the files' order. */
  keep(files: readonly ManifestFile[], changed: readonly FileReading[]): FileReading[] {
    const readings = new Map(changed.map((reading) => [reading.name, reading]));
    const kept = files.map(({ name, text }): [string, KeptFile] => {
      const reading = readings.get(name) ?? this.#files.get(name)?.reading;
      if (reading === undefined) throw new Error(`${name} has not been read`);
      return [name, { text, reading }];
    });
    this.#files = new Map(kept);
    return kept.map(([, { reading }]) => reading);
  }
}
