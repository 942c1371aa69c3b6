import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import type { FeatureGates } from "../config/feature-gates.ts";
import { type WatchPaths, watchFolders } from "../config/path-watcher.ts";
import { inSlices } from "../lifecycle/slices.ts";
import type { ClusterStore } from "./cluster-store.ts";
import { readManifestFiles } from "./manifest-files.ts";
import { ManifestMemory } from "./manifest-memory.ts";
import {
  type FileReading,
  joiningFiles,
  type ManifestFile,
  type ReadItem,
  readingFiles,
} from "./manifests.ts";
import { readInThread } from "./read-in-thread.ts";

/** Long enough for an editor or a folder copy to finish, and too short for operators to notice. */
const DEFAULT_RELOAD_DELAY_MS = 200;

/**
 * A thread reads a reload of this size or more; a smaller one takes less time than starting a
 * thread.
 */
const THREAD_CHARACTERS = 64 * 1024;

type KnownItems = ReadonlyMap<string, ReadItem>;
type ReadFiles = (changed: readonly ManifestFile[], known: KnownItems) => Promise<FileReading[]>;

/** Receives the running source's messages. */
interface ReloadLogger {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

/** Keeps valid manifests longer than the process that read them lives. */
export interface LastGoodManifests {
  keep(files: readonly ManifestFile[]): void;
  /** Undefined if none were kept. */
  recall(): Promise<readonly ManifestFile[] | undefined>;
}

interface ManifestSourceOptions {
  /** Files and folders. */
  readonly paths: readonly string[];
  readonly store: ClusterStore;
  /** The gates decide which optional fields the objects keep. */
  readonly gates: FeatureGates;
  readonly logger: ReloadLogger;
  readonly lastGood?: LastGoodManifests | undefined;
  readonly watchPaths?: WatchPaths;
  readonly reloadDelayMs?: number;
  readonly now?: () => Date;
  /** The compiled manifest-thread.ts. */
  readonly threadProgram?: URL;
}

/**
 * Keeps a store equal to manifest files. A bad edit is logged and changes nothing; the last good
 * state stays.
 */
export class ManifestSource {
  readonly #options: ManifestSourceOptions;
  #stopWatching: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #reloading: Promise<void> = Promise.resolve();
  #isStopped = false;
  readonly #passedOver = new Set<string>();
  readonly #memory = new ManifestMemory();

  private constructor(options: ManifestSourceOptions) {
    this.#options = options;
  }

  /**
   * Loads the files and watches them. Throws ConfigurationError if they are invalid at the start
   * and no last good ones exist.
   */
  static async start(options: ManifestSourceOptions): Promise<ManifestSource> {
    const source = new ManifestSource(options);
    const { paths, watchPaths = watchFolders } = options;
    // Watches before it reads, so that it misses no change.
    source.#stopWatching = watchPaths(paths, {
      onChange: () => source.#scheduleReload(),
      onError: (error) =>
        source.#options.logger.error({ paths, error: error.message }, "manifests are no longer watched"),
    });
    try {
      await source.#loadFirst();
    } catch (error) {
      await source.stop();
      throw error;
    }
    return source;
  }

  /** Reads the files now, even if they seem unchanged. Never rejects. */
  reload(): Promise<void> {
    this.#reloading = this.#reloading.then(() => this.#reload());
    return this.#reloading;
  }

  /** No reload happens after this promise resolves. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#stopWatching();
    clearTimeout(this.#timer);
    await this.#reloading;
  }

  #scheduleReload(): void {
    // The delay starts at the first of several events, so that a busy folder cannot delay the
    // reload forever.
    if (this.#isStopped || this.#timer !== undefined) return;
    const { reloadDelayMs = DEFAULT_RELOAD_DELAY_MS } = this.#options;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.reload();
    }, reloadDelayMs).unref();
  }

  async #reload(): Promise<void> {
    if (this.#isStopped) return;
    const { logger, paths } = this.#options;
    let changes: number;
    try {
      changes = await this.#load(await readManifestFiles(paths), (...asked) => this.#readAside(...asked));
    } catch (error) {
      this.#logWrong(error);
      return;
    }
    if (changes > 0) logger.info({ paths, changes }, "manifests reloaded");
  }

  async #loadFirst(): Promise<void> {
    const { paths, lastGood } = this.#options;
    const read: ReadFiles = (...asked) => this.#readHere(...asked);
    try {
      await this.#load(await readManifestFiles(paths), read);
    } catch (error) {
      const kept = error instanceof ConfigurationError ? await lastGood?.recall() : undefined;
      if (kept === undefined) throw error;
      this.#logWrong(error);
      await this.#load(kept, read);
    }
  }

  #logWrong(error: unknown): void {
    const { logger, paths } = this.#options;
    const problems = error instanceof Error ? error.message.split("\n") : [String(error)];
    logger.error({ paths, problems }, "manifests are invalid, the last good ones stay in use");
  }

  /** Returns the number of changes. */
  async #load(files: readonly ManifestFile[], read: ReadFiles): Promise<number> {
    const { store, lastGood, now = () => new Date() } = this.#options;
    let comparison = await inSlices(this.#memory.comparing(files));
    let changed = await read(comparison.changed, comparison.known);
    const again = this.#memory.whole(comparison, changed);
    if (again !== undefined) {
      comparison = again;
      changed = await read(again.changed, again.known);
    }
    const readings = await inSlices(this.#memory.keeping(comparison, changed));
    const objects = await inSlices(joiningFiles(readings, (line) => this.#logPassedOver(line)));
    lastGood?.keep(files);
    return this.#isStopped ? 0 : await inSlices(store.replacingAll(objects, now()));
  }

  /** Logs once for each file, until its kinds change. */
  #logPassedOver(line: string): void {
    if (this.#passedOver.has(line)) return;
    this.#passedOver.add(line);
    this.#options.logger.info({ manifest: line }, "objects of manifests are passed over");
  }

  #readHere(files: readonly ManifestFile[], known: KnownItems): Promise<FileReading[]> {
    return inSlices(readingFiles(files, { gates: this.#options.gates, known }));
  }

  async #readAside(files: readonly ManifestFile[], known: KnownItems): Promise<FileReading[]> {
    const { gates, logger, threadProgram } = this.#options;
    const characters = files.reduce((sum, { text }) => sum + text.length, 0);
    if (characters < THREAD_CHARACTERS) return await this.#readHere(files, known);
    try {
      return await readInThread(files, gates, threadProgram, known);
    } catch (error) {
      logger.error(
        { error: String(error) },
        "manifests could not be read in a thread, and are read without one",
      );
      return await this.#readHere(files, known);
    }
  }
}
